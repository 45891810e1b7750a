// Options and parameters that batch_norm and layer_norm share, and what all normalizations refuse.
#pragma once
#include <array>
#include <strata/base/float_range.hpp>
#include <strata/initializers/constant.hpp>
#include <strata/layers/options.hpp>

namespace strata {

namespace reasons {
inline constexpr reason normalization_epsilon_must_be_positive_and_finite_as_float{
    "the epsilon of a normalization must be above 0 and finite as float"};
inline constexpr reason normalization_takes_at_least_one_extent{"a normalization needs an axis to work on: put input<...> first"};
}  // namespace reasons

/// Added to the variance, inside the root.
template <core::decimal Value>
struct epsilon {
  static constexpr void configure(auto& settings)
    requires requires { settings.epsilon; }
  {
    settings.epsilon = Value;
  }
};

/// No beta: normalized values are not shifted.
struct no_center {
  static constexpr void configure(detail::with_beta auto& settings) { settings.center = false; }
};

/// No gamma: normalized values are not scaled.
struct no_scale {
  static constexpr void configure(detail::with_gamma auto& settings) { settings.scale = false; }
};

namespace detail {
/// gamma and beta, unless the settings S leave them out, then `More` empty entries.
template <auto S, int More = 0>
constexpr auto gamma_and_beta(shape extents) {
  std::array<parameter, S.scale + S.center + More> owned{};
  std::size_t n = 0;
  if (S.scale) owned[n++] = {"gamma", extents, &info_of_initializer<ones>};
  if (S.center) owned[n++] = {"beta", extents, &info_of_initializer<zeros>};
  return owned;
}
}  // namespace detail

}  // namespace strata
