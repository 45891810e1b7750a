// An optimizer turns a reduced gradient into a change of the weights, one element at a time.
#pragma once
#include <concepts>
#include <strata/optimizers/gradient.hpp>
#include <strata/optimizers/learning_rate.hpp>

namespace strata {

/// Members (names and meaning as in Keras; 0 switches the last four off):
///   `learning_rate`   a number or a schedule
///   `weight_decay`, `clipnorm`, `clipvalue`, `global_clipnorm`
///   `slots()`         how many arenas of state (momentum, ...) it keeps beside the weights
///   `with_rule<T>(step, rate, f)`  calls f(rule) with the element-wise rule of this step (from 0): a function object with
///                     `static constexpr int slots` and, for V = T or a vector of T,
///                     `operator()(V& weight, reduced_gradient<V> gradient, V&... slot) const`
/// Clipping and decoupled weight decay come before the rule and are done for it.
template <class O>
concept optimizer = std::copy_constructible<O> && requires(const O& o) {
  { O::name } -> std::convertible_to<const char*>;
  { o.slots() } -> std::convertible_to<int>;
  { o.learning_rate } -> std::convertible_to<learning_rate_schedule>;
  { o.weight_decay } -> std::convertible_to<double>;
  { o.clipnorm } -> std::convertible_to<double>;
  { o.clipvalue } -> std::convertible_to<double>;
  { o.global_clipnorm } -> std::convertible_to<double>;
};

}  // namespace strata
