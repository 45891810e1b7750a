// Keeping gradients small. The order of a step is Keras': reduce, clip, decay the weights, then the optimizer's rule.
#pragma once
#include <cmath>
#include <strata/optimizers/elementwise.hpp>
#include <strata/optimizers/gradient.hpp>

namespace strata {

/// Each element kept within [-limit, limit].
template <class V, class T>
constexpr reduced_gradient<V> clip_by_value(reduced_gradient<V> gradient, T limit) {
  return reduction::transformed(gradient, [=](V g) {
    const V high = detail::spread<V>(limit), low = detail::spread<V>(-limit);
    g = g > high ? high : g;
    return g < low ? low : g;
  });
}

/// Multiplied by a factor of the two functions below.
template <class V, class T>
constexpr reduced_gradient<V> clip_by_factor(reduced_gradient<V> gradient, T factor) {
  return reduction::transformed(gradient, [=](V g) { return detail::product(g, factor); });
}

/// What makes a parameter's gradient no longer than `limit`; 1 where it is short enough.
inline double clipnorm_factor(double sum_of_squares, double limit) {
  const double norm = std::sqrt(sum_of_squares);
  return norm <= limit ? 1 : limit / norm;
}

/// The same with one norm for all parameters; nan if it is not finite, so that no step hides it.
inline double global_clipnorm_factor(double sum_of_squares, double limit) {
  const double norm = std::sqrt(sum_of_squares);
  return (norm <= limit ? 1 : limit / norm) + (norm - norm);
}

}  // namespace strata
