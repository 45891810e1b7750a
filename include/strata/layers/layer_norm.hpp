// layer_norm<>: layer normalization.
#pragma once
#include <strata/layers/normalization_options.hpp>

namespace strata {

namespace core {
struct layer_norm_settings {
  decimal epsilon = decimal(1, -3);
  bool center = true, scale = true;
};

/// y = gamma * (x - mean) / sqrt(variance + epsilon) + beta, with mean and (biased) variance over the last axis.
/// in: (..., C)  out: (..., C)  gamma, beta: (C)
template <layer_norm_settings S>
struct layer_normalization {
  static constexpr auto name = "layer_normalization";
  static constexpr operation_traits traits{.makes = value_range::real};

  static constexpr expected_shape output_shape(shape in) {
    if (!detail::is_positive_float(S.epsilon.value())) return reasons::normalization_epsilon_must_be_positive_and_finite_as_float;
    if (in.rank() < 1) return reasons::normalization_takes_at_least_one_extent;
    return in;
  }
  static constexpr auto parameters(shape in) { return detail::gamma_and_beta<S>({in.last()}); }
};
}  // namespace core

/// Layer normalization (Ba et al. 2016) over the last axis: layer_norm<>, layer_norm<epsilon<1e-5_r>>.
/// in: (..., C)  out: (..., C)  Options: epsilon, no_center, no_scale, gamma_/beta_initializer, gamma_/beta_regularizer.
/// https://keras.io/api/layers/normalization_layers/layer_normalization
template <class... Options>
struct layer_norm /* write layer_norm<> */ : core::layer_options<core::layer_norm_settings, Options...> {
  static constexpr auto name = "layer_normalization", class_name = "LayerNormalization";
  using operations = core::type_list<core::layer_normalization<layer_norm::configured(core::layer_norm_settings{})>>;
};

}  // namespace strata
