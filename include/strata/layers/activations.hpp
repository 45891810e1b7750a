// Activations. Each is an option of a layer, as in dense<64, relu>, or a layer of its own: activation<relu>.
// in: any shape  out: the same shape
#pragma once
#include <strata/base/decimal.hpp>
#include <strata/base/shape.hpp>
#include <strata/concepts/operation.hpp>

namespace strata {

namespace reasons {
inline constexpr reason leaky_relu_slope_must_not_be_negative{"the slope of leaky_relu must be at least 0"};
inline constexpr reason elu_alpha_must_not_be_negative{"the alpha of elu must be at least 0"};
}  // namespace reasons

namespace detail {
struct keeps_shape {
  using is_activation = void;
  static constexpr expected_shape output_shape(shape in) { return in; }
};
struct elementwise_function : keeps_shape {
  static constexpr operation_traits traits{.elementwise = true, .makes = value_range::real};
};
}  // namespace detail

// Names, formulas and defaults are those of keras.activations: https://keras.io/api/layers/activations

/// x: the identity. activation<linear> at the end of a network declares that its predictions are passed to the loss unchanged.
struct linear : detail::keeps_shape {
  static constexpr auto name = "linear";
  static constexpr core::operation_traits traits{.is_view = true};
};

/// max(x, 0); the slope at 0 is 0.
struct relu : detail::elementwise_function {
  static constexpr auto name = "relu";
};

/// min(max(x, 0), 6)
struct relu6 : detail::elementwise_function {
  static constexpr auto name = "relu6";
};

/// x > 0 ? x : slope * x. Keras' function has slope 0.2; its layer LeakyReLU has 0.3.
template <core::decimal Slope = core::decimal(2, -1)>
struct leaky_relu /* write leaky_relu<> */ : detail::elementwise_function {
  static constexpr auto name = "leaky_relu";
  static constexpr double slope = Slope.value();
  static constexpr core::expected_shape output_shape(shape in) {
    if (slope < 0) return reasons::leaky_relu_slope_must_not_be_negative;
    return in;
  }
};

/// x > 0 ? x : alpha * (exp(x) - 1)   (Clevert et al. 2016)
template <core::decimal Alpha = core::decimal(1)>
struct elu /* write elu<> */ : detail::elementwise_function {
  static constexpr auto name = "elu";
  static constexpr double alpha = Alpha.value();
  static constexpr core::expected_shape output_shape(shape in) {
    if (alpha < 0) return reasons::elu_alpha_must_not_be_negative;
    return in;
  }
};

/// scale * elu<alpha>(x), with the constants for which activations tend to mean 0 and variance 1 (Klambauer et al. 2017).
struct selu : detail::elementwise_function {
  static constexpr auto name = "selu";
  static constexpr double alpha = 1.6732632423543772848170429916717, scale = 1.0507009873554804934193349852946;
};

/// x * P(X <= x) for a standard normal X: x / 2 * (1 + erf(x / sqrt(2)))   (Hendrycks and Gimpel 2016)
struct gelu : detail::elementwise_function {
  static constexpr auto name = "gelu";
};

/// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))): the approximation of gelu in GPT-2 and BERT.
struct gelu_approximate : detail::elementwise_function {
  static constexpr auto name = "gelu_approximate";
};

/// x * sigmoid(x); also known as swish.
struct silu : detail::elementwise_function {
  static constexpr auto name = "silu";
};

/// min(max(x + 3, 0), 6) / 6: sigmoid in three straight pieces.
struct hard_sigmoid : detail::keeps_shape {
  static constexpr auto name = "hard_sigmoid";
  static constexpr core::operation_traits traits{.elementwise = true, .makes = core::value_range::from_0_to_1};
};

/// x * hard_sigmoid(x); also known as hard swish (Howard et al. 2019, MobileNetV3).
struct hard_silu : detail::elementwise_function {
  static constexpr auto name = "hard_silu";
};

/// 1 / (1 + exp(-x))
struct sigmoid : detail::elementwise_function {
  static constexpr auto name = "sigmoid";
  static constexpr core::operation_traits traits{.elementwise = true, .makes = core::value_range::from_0_to_1};
};

/// tanh(x). A type strata::tanh would make each call of the C library's ::tanh ambiguous after `using namespace strata`.
struct tanh_activation : detail::elementwise_function {
  static constexpr auto name = "tanh";
};

/// log(1 + exp(x))
struct softplus : detail::elementwise_function {
  static constexpr auto name = "softplus";
  static constexpr core::operation_traits traits{.elementwise = true};
};

/// x / (1 + |x|)
struct softsign : detail::elementwise_function {
  static constexpr auto name = "softsign";
};

/// exp(x_i) / sum_j exp(x_j) over the last axis
struct softmax : detail::keeps_shape {
  static constexpr auto name = "softmax";
  static constexpr core::operation_traits traits{.over_last_axis = true, .makes = core::value_range::distribution};
};

}  // namespace strata
