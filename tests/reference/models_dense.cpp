// Networks of dense layers against the recordings.
#include <strata/cpu/cpu.hpp>
#include <strata/losses/categorical_crossentropy.hpp>
#include <strata/losses/sparse_categorical_crossentropy.hpp>

#include "models.hpp"

using namespace strata;
using strata::test::check_model;

TEST_CASE("mlp") { check_model<sequential<input<784>, dense<128, relu>, dense<10, softmax>>, categorical_crossentropy<>>("mlp"); }

TEST_CASE("mlp_logits") {
  check_model<sequential<input<784>, dense<128, relu>, dense<10>>, categorical_crossentropy<from_logits>>("mlp_logits");
}

TEST_CASE("mlp_deep") {
  using deep = sequential<input<784>, dense<64, relu>, dense<64, relu>, dense<10, softmax>>;
  check_model<deep, sparse_categorical_crossentropy<>>("mlp_deep");
}
