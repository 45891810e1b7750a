// A strategy is a policy: it makes the executor of a program.
#pragma once
#include <concepts>
#include <cstdint>
#include <strata/base/reason.hpp>

namespace strata {

namespace detail {
struct any_program;
}

namespace core {
///   `name`                             of the strategy
///   `executor<Program>`                a model of the concept executor
///   `make<Program>(optimizer, seed)`   returns one. The trainer checks these two, because they need a program
///   `backend`                          optional: whose kernels compute; the trainer then tells which one is missing
///   `trains_graphs`                    optional: true if its executors train any number of inputs and outputs
///   `trains_shared`                    optional: true if they train layers that share weights, too
///   `fit_callback`                     optional: a callback that the trainer adds to each fit
template <class S>
concept strategy = std::copy_constructible<S> && requires {
  { S::name } -> std::convertible_to<const char*>;
  typename S::template executor<detail::any_program>;
};

inline constexpr reason a_strategy_is_copyable_and_has_a_name{"a strategy is copyable and has a static member name"};
inline constexpr reason a_strategy_has_make_of_an_optimizer_and_a_seed{
    "a strategy has make<Program>(optimizer, seed) const, which returns its executor"};
}  // namespace core

namespace detail {
/// Probably meant as a strategy.
template <class S>
concept has_executor = requires { typename S::template executor<any_program>; };

/// no_complaint, or what a strategy lacks to make executors of a program.
template <class S, class Program>
struct strategy_verdict : lacks<S, a_strategy_has_make_of_an_optimizer_and_a_seed> {};
template <class S, class Program>
  requires requires(const S& s, typename Program::optimizer optimizer) {
    { s.template make<Program>(optimizer, std::uint64_t{1}) } -> std::same_as<typename S::template executor<Program>>;
  }
struct strategy_verdict<S, Program> {
  using type = no_complaint;
};
}  // namespace detail

}  // namespace strata
