// A residual network with batch normalization against the recordings: moving statistics, training and inference.
#include <strata/cpu/cpu.hpp>
#include <strata/layers/activation.hpp>
#include <strata/layers/residual.hpp>
#include <strata/losses/sparse_categorical_crossentropy.hpp>

#include "models.hpp"

using namespace strata;

TEST_CASE("residual") {
  using convolution = conv2d<8, 3, same_padding, no_bias>;
  using net = sequential<input<8, 8, 3>, convolution, batch_norm<>, activation<relu>,
                         residual<convolution, batch_norm<>, activation<relu>, convolution, batch_norm<>>, activation<relu>,
                         global_average_pool2d, dense<5, softmax>>;
  test::check_model<net, sparse_categorical_crossentropy<>>("residual");
}
