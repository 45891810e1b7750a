// The reference CNN against the recordings.
#include <strata/cpu/cpu.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/losses/sparse_categorical_crossentropy.hpp>

#include "models.hpp"

using namespace strata;

TEST_CASE("cnn") {
  using cnn = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<2>, conv2d<64, 3, relu>, max_pool2d<2>, flatten,
                         dense<64, relu>, dense<10, softmax>>;
  test::check_model<cnn, sparse_categorical_crossentropy<>>("cnn");
}
