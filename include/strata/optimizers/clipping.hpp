// Gradient clipping. A step has Keras' order: reduce, clip, decay the weights, apply the optimizer's rule.
#pragma once
#include <cmath>
#include <strata/optimizers/elementwise.hpp>
#include <strata/optimizers/gradient.hpp>

namespace strata::core {

/// Clamps each element to [-limit, limit].
template <class V, class T>
constexpr reduced_gradient<V> clip_by_value(reduced_gradient<V> gradient, T limit) {
  return detail::after_reduction::transformed(gradient, [=](V g) {
    const V high = detail::spread<V>(limit), low = detail::spread<V>(-limit);
    g = g > high ? high : g;
    return g < low ? low : g;
  });
}

/// Multiplies by a clipnorm_factor.
template <class V, class T>
constexpr reduced_gradient<V> clip_by_factor(reduced_gradient<V> gradient, T factor) {
  return detail::after_reduction::transformed(gradient, [=](V g) { return detail::product(g, factor); });
}

/// The factor that reduces a norm (that of a parameter's gradient, or one over all parameters) to `limit`; 1 if it is not larger.
/// It is nan if the norm is not finite, so that clipping does not hide that.
template <class T>
constexpr double clipnorm_factor(T sum_of_squares, double limit) {
  const double norm = std::sqrt(double(sum_of_squares));
  return (norm <= limit ? 1 : limit / norm) + (norm - norm);
}

}  // namespace strata::core
