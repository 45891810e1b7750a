// The common part of the focal losses.
#pragma once
#include <strata/losses/number_math.hpp>
#include <strata/losses/options.hpp>

namespace strata {

/// The weight of a class. Keras' default is 0.25.
template <core::decimal Weight>
struct focal_alpha {
  static constexpr void configure(auto& settings)
    requires requires { settings.alpha; }
  {
    settings.alpha = Weight;
  }
};

/// A prediction of probability p for the right class weighs (1 - p)^Exponent. Keras' default is 2.
template <core::decimal Exponent>
struct focal_gamma {
  static constexpr void configure(auto& settings)
    requires requires { settings.gamma; }
  {
    settings.gamma = Exponent;
  }
};

/// Elements of class 1 weigh alpha, those of class 0 weigh 1 - alpha.
struct apply_class_balancing {
  static constexpr void configure(auto& settings)
    requires requires { settings.class_balancing; }
  {
    settings.class_balancing = true;
  }
};

namespace reasons {
inline constexpr reason focal_gamma_must_be_at_least_0{"the exponent of focal_gamma must be at least 0"};
inline constexpr reason focal_alpha_must_be_from_0_to_1{"the weight of focal_alpha must be at least 0 and at most 1"};
}  // namespace reasons

namespace detail {
/// The shape of the predictions, or a refusal if the settings are invalid.
template <class Settings>
constexpr expected_shape shape_for_focal(const Settings& s, expected_shape in) {
  if (s.label_smoothing.value() < 0 || s.label_smoothing.value() > 1) return reasons::label_smoothing_must_be_from_0_to_1;
  if (s.gamma.value() < 0) return reasons::focal_gamma_must_be_at_least_0;
  if (s.alpha.value() < 0 || s.alpha.value() > 1) return reasons::focal_alpha_must_be_from_0_to_1;
  return in;
}

/// d x^exponent / dx
template <class M>
constexpr typename M::value slope_of_power(typename M::value x, double exponent) {
  if (exponent == 0) return typename M::value{};
  return typename M::number(exponent) * power<M>(x, exponent - 1);
}
}  // namespace detail

}  // namespace strata
