// Activations against the recordings.
#include <strata/cpu/cpu.hpp>
#include <strata/layers/activation.hpp>

#include "layer_check.hpp"

using namespace strata;
using namespace strata::core;
using strata::test::check_layer;

static strata::test::recording recorded("activations");

namespace {
/// keras.activations.relu with all its arguments, as a user would write it: every backend must take it.
template <decimal NegativeSlope, decimal MaxValue, decimal Threshold>
struct general_relu {
  using is_activation = void;
  static constexpr auto name = "general_relu";
  static constexpr expected_shape output_shape(shape in) { return in; }
  static constexpr bool uses_input = true, uses_output = false;
  static constexpr double negative_slope = NegativeSlope.value(), max_value = MaxValue.value(), threshold = Threshold.value();

  template <class T>
  static constexpr T value(T x) {
    return x >= T(max_value) ? T(max_value) : x > T(threshold) ? x : T(negative_slope) * (x - T(threshold));
  }
  template <class T>
  static constexpr T derivative(T x, T) {
    return x >= T(max_value) ? T(0) : x > T(threshold) ? T(1) : T(negative_slope);
  }
};
}  // namespace

TEST_CASE("rectifiers") {
  check_layer<activation<relu>, shape{13}>(recorded, "relu");
  check_layer<activation<relu6>, shape{13}>(recorded, "relu6");
  check_layer<activation<leaky_relu<0.1_r>>, shape{13}>(recorded, "relu_negative_slope");
  check_layer<activation<leaky_relu<0.3_r>>, shape{13}>(recorded, "leaky_relu_layer");
  check_layer<activation<leaky_relu<>>, shape{13}>(recorded, "leaky_relu_function");
  check_layer<activation<general_relu<0_r, 1.5_r, 0_r>>, shape{13}>(recorded, "relu_max_value");
  check_layer<activation<general_relu<0_r, 1e9_r, 0.75_r>>, shape{13}>(recorded, "relu_threshold");
  check_layer<activation<general_relu<0.1_r, 3_r, 0.5_r>>, shape{13}>(recorded, "relu_all");
}

TEST_CASE("smooth activations") {
  check_layer<activation<elu<>>, shape{13}>(recorded, "elu");
  check_layer<activation<elu<0.5_r>>, shape{13}>(recorded, "elu_alpha");
  check_layer<activation<selu>, shape{13}>(recorded, "selu");
  check_layer<activation<gelu>, shape{13}>(recorded, "gelu");
  check_layer<activation<gelu_approximate>, shape{13}>(recorded, "gelu_approximate");
  check_layer<activation<silu>, shape{13}>(recorded, "silu");
  check_layer<activation<sigmoid>, shape{13}>(recorded, "sigmoid");
  check_layer<activation<tanh_activation>, shape{13}>(recorded, "tanh");
  check_layer<activation<softplus>, shape{13}>(recorded, "softplus");
}

TEST_CASE("softmax") {
  check_layer<activation<softmax>, shape{13}>(recorded, "softmax");
  check_layer<activation<softmax>, shape{3, 7}>(recorded, "softmax_rank3");
}

TEST_CASE("no recorded tensor is forgotten") { CHECK(recorded.forgotten() == ""); }
