// Modifications of a mean gradient before an optimizer's rule: penalties are added, then it is clipped.
#pragma once
#include <limits>
#include <strata/optimizers/clipping.hpp>
#include <strata/optimizers/elementwise.hpp>
#include <strata/optimizers/gradient.hpp>

namespace strata {

namespace core {
/// The modifications of the mean gradient of some elements before the rule, and of their weights.
template <class T>
struct gradient_modifiers {
  T l1 = 0, l2 = 0;    // adds the derivative of l1 * |w| + l2 * w^2
  T clip_factor = 1;   // clipnorm_factor of a norm
  T clip_value = 0;    // 0: off
  T weight_decay = 0;  // w -= w * weight_decay; includes the learning rate

  /// Whether the rule receives the mean gradient unchanged.
  constexpr bool keep_gradient() const { return l1 == 0 && l2 == 0 && clip_factor == 1 && clip_value == 0; }
};
}  // namespace core

namespace detail {

template <class V, class T>
constexpr reduced_gradient<V> add_penalty(reduced_gradient<V> gradient, V w, T l1, T l2) {
  return after_reduction::transformed(gradient, [=](V g) {
    const V slope = w > all_zeros<V>() ? spread<V>(l1) : w < all_zeros<V>() ? spread<V>(-l1) : all_zeros<V>();
    return g + (product(w, l2 + l2) + slope);
  });
}

/// The gradient that the rule receives, for the weight w.
template <class V, class T>
constexpr reduced_gradient<V> modified(reduced_gradient<V> gradient, V w, const gradient_modifiers<T>& m) {
  const T clip_value = m.clip_value == 0 ? std::numeric_limits<T>::infinity() : m.clip_value;
  return clip_by_value(clip_by_factor(add_penalty(gradient, w, m.l1, m.l2), m.clip_factor), clip_value);
}

/// The direction that a factored_rule proposes for an element of a matrix, whose moment is of_row * of_column. That product can
/// leave the range of T although its root is within it, for example if neither the row nor the column has had a gradient. Then
/// the gradient is divided by the root of of_row, and its moment is of_column.
template <class Rule, class V, class T>
constexpr V propose_from_factors(const Rule& rule, reduced_gradient<V> gradient, V of_column, T of_row, T inverse_root_of_row) {
  using limits = std::numeric_limits<T>;
  const V moment = of_column * of_row, low = spread<V>(limits::min()), high = spread<V>(limits::max());
  const V by_row = product(gradient.value(), inverse_root_of_row);
  const V g = moment < low ? by_row : moment > high ? by_row : gradient.value();
  const V its_moment = moment < low ? of_column : moment > high ? of_column : moment;
  return rule.propose(after_reduction::transformed(gradient, [=](V) { return g; }), its_moment);
}

}  // namespace detail

}  // namespace strata
