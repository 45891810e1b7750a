// An optimizer turns a reduced gradient into a change of the weights, one element at a time.
#pragma once
#include <concepts>
#include <strata/optimizers/gradient.hpp>
#include <strata/optimizers/learning_rate.hpp>
#include <type_traits>
#include <utility>

namespace strata {

namespace detail {
template <class R, class V, class Gradient, class Slots>
inline constexpr bool updates_with = false;
template <class R, class V, class Gradient, int... I>
inline constexpr bool updates_with<R, V, Gradient, std::integer_sequence<int, I...>> =
    std::is_invocable_v<const R&, V&, Gradient, std::enable_if_t<(I >= 0), V>&...>;
}  // namespace detail

/// The element-wise rule of one step: a function object with `static constexpr int slots` and, for V = T or a vector of T,
///   `operator()(V& weight, reduced_gradient<V> gradient, V&... slot) const`
/// It takes no other kind of gradient, and holds nothing but numbers, so that each thread may keep a copy in registers.
template <class R, class V>
concept optimizer_rule = std::is_trivially_copyable_v<R> && requires {
  requires R::slots >= 0;
  requires detail::updates_with<R, V, reduced_gradient<V>, std::make_integer_sequence<int, R::slots>>;
  requires !detail::updates_with<R, V, local_gradient<V>, std::make_integer_sequence<int, R::slots>>;
};

namespace detail {
struct takes_any_rule {
  void operator()(const auto&) const {}
};
}  // namespace detail

/// Members (names and meaning as in Keras; 0 switches the last four off):
///   `learning_rate`   a learning_rate_schedule
///   `weight_decay`, `clipnorm`, `clipvalue`, `global_clipnorm`
///   `slots()`         how many arenas of state (momentum, ...) it keeps beside the weights; they start at zero
///   `validate()`      throws strata::error if its numbers make no sense
///   `with_rule<T>(step, rate, f)`  calls f(rule) with the optimizer_rule of this step (from 0), which takes all slots
/// Clipping and decoupled weight decay come before the rule and are done for it.
template <class O>
concept optimizer = std::copy_constructible<O> && requires(const O& o) {
  { O::name } -> std::convertible_to<const char*>;
  { o.slots() } -> std::same_as<int>;
  { o.learning_rate } -> std::convertible_to<learning_rate_schedule>;
  { o.weight_decay } -> std::convertible_to<double>;
  { o.clipnorm } -> std::convertible_to<double>;
  { o.clipvalue } -> std::convertible_to<double>;
  { o.global_clipnorm } -> std::convertible_to<double>;
  o.validate();
  o.template with_rule<float>(0L, 0.1, detail::takes_any_rule{});
  o.template with_rule<double>(0L, 0.1, detail::takes_any_rule{});
};

}  // namespace strata
