// Joins that compute each element of the output from the same element of every branch.
#pragma once
#include <concepts>
#include <span>
#include <strata/layers/branch.hpp>

namespace strata::core {

/// Base of such a join: branches of one shape, or the error `Unequal`. A join adds `name` and
///   `value<T>(x)`              the output of one element, where x is a V[number of branches] and V is T or a vector of T
///   `gradients<T>(x, dy, dx)`  stores the gradient of every branch; x holds no values unless reads_input is true
/// Both are element-wise and free of state, so every backend has one kernel for all of these joins.
template <const reason& Unequal>
struct elementwise_join_base {
  static constexpr bool is_elementwise_join = true;
  /// Whether gradients() reads x: the plan then keeps the outputs of the branches until the backward pass.
  static constexpr bool reads_input = false;

  /// in: equal shapes  out: the same shape
  static constexpr expected_shape output_shape(std::span<const shape> in) {
    if (in.empty()) return reasons::a_join_needs_at_least_one_branch;
    for (const shape& s : in)
      if (s != in[0]) return Unequal;
    return in[0];
  }
};

template <class J>
concept elementwise_join = requires { requires J::is_elementwise_join; } && requires(const float (&x)[2], float (&dx)[2]) {
  { J::reads_input } -> std::convertible_to<bool>;
  { J::template value<float>(x) } -> std::same_as<float>;
  J::template gradients<float>(x, x[0], dx);
};

}  // namespace strata::core
