// Kernels that apply the rule of an optimizer to each element, in one pass or, with norms between them, in two.
#pragma once
#include <cmath>
#include <strata/concepts/optimizer.hpp>
#include <strata/cuda/engine/update_terms.hpp>
#include <utility>

namespace strata::machine {

template <class T, class Slots>
struct slots_of_element;
template <class T, int... Slot>
struct slots_of_element<T, std::integer_sequence<int, Slot...>> {
  T* slots;
  long stride;

  /// f(slot...)
  template <class F>
  constexpr auto operator()(long i, F&& f) const {
    return f(slots[Slot * stride + i]...);
  }
};
template <class T, class Rule>
using slots_of = slots_of_element<T, strata::detail::slots_of_rule<Rule>>;

template <class T, class Rule>
struct apply_rule {
  update_terms<T> of;
  slots_of<T, Rule> slots;

  constexpr void operator()(long i) const {
    const auto [k, is_trained] = of.ranges.of(i);
    if (!is_trained) return;
    const reduced_gradient<T> gradient = of.gradient(i, k);
    of.decay(i);
    slots(i, [&](auto&... slot) { of.now->template rule_as<Rule>()(of.weights[i], gradient, slot...); });
  }
};

/// The first pass of a parameterwise_rule.
template <class T, class Rule>
struct propose_direction {
  update_terms<T> of;
  slots_of<T, Rule> slots;

  constexpr void operator()(long i) const {
    const auto [k, is_trained] = of.ranges.of(i);
    T direction{};
    if (is_trained) {
      const reduced_gradient<T> gradient = of.gradient(i, k);
      of.decay(i);
      direction =
          slots(i, [&](auto&... slot) { return of.now->template rule_as<Rule>().propose(of.weights[i], gradient, slot...); });
    }
    of.first_array[i] = direction;
  }
};

/// The last pass of a parameterwise_rule or a factored_rule.
template <class T, class Rule>
struct apply_direction {
  update_terms<T> of;
  slots_of<T, Rule> slots;
  const double *weight_squares, *direction_squares;

  constexpr void operator()(long i) const {
    const auto [k, is_trained] = of.ranges.of(i);
    if (!is_trained) return;
    const Rule& rule = of.now->template rule_as<Rule>();
    const auto scale = rule.scale({std::sqrt(weight_squares[k]), std::sqrt(direction_squares[k]), of.ranges.all[k].elements});
    if constexpr (strata::detail::applies_with_slots<Rule, T, strata::detail::slots_of_rule<Rule>>)
      slots(i, [&](auto&... slot) { rule.apply(of.weights[i], of.first_array[i], scale, slot...); });
    else
      rule.apply(of.weights[i], of.first_array[i], scale);
  }
};

}  // namespace strata::machine
