// Mixed precision among layers without mixed kernels: normalisation, branches, pooling, dropout; in training and in inference.
#include <doctest/doctest.h>

#include <strata/cpu/mixed/mixed.hpp>
#include <strata/strata.hpp>

using namespace strata;

namespace {

using net =
    sequential<input<28, 28, 1>, max_pool2d<2>, conv2d<32, 3, same_padding, no_bias>, batch_norm<>, activation<relu>,
               max_pool2d<2>, residual<conv2d<32, 3, same_padding, no_bias>, batch_norm<>, activation<relu>, conv2d<32, 1>>,
               dropout<0.1_r>, flatten, dense<10, softmax>>;

template <class Precision>
auto make_model(Precision precision) {
  return trainer{net{}, adam{.learning_rate = 0.01}, sparse_categorical_crossentropy{}, precision};
}
template <class Model>
double loss_in_training(Model& model) {
  return model.fit(data::synthetic_digits(256, 1) | data::shuffle(256) | data::batch<32>, epochs(4), verbosity::off)
      .all()
      .back()["loss"];
}
template <class Model>
double loss_in_inference(Model& model) {
  return model.evaluate(data::synthetic_digits(128, 2) | data::batch<64>)["loss"];
}

}  // namespace

TEST_CASE("a residual network in mixed precision") {
  auto full = make_model(precision::f32{});
  auto mixed = make_model(precision::mixed_bf16{});
  const double loss = loss_in_training(full);
  CHECK(loss < 2);
  CHECK(loss_in_training(mixed) == doctest::Approx(loss).epsilon(0.1));
  full.set_parameters(mixed.parameters());
  const double same_weights = loss_in_inference(full), rounded = loss_in_inference(mixed);
  CHECK(rounded == doctest::Approx(same_weights).epsilon(0.02));
  CHECK(rounded != same_weights);
}
