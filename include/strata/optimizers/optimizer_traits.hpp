// What is known of an optimizer besides its rule.
#pragma once
#include <strata/base/namespaces.hpp>

namespace strata::core {

/// What differs from the defaults is named: `static constexpr optimizer_traits traits{.averages_weights = true};`
struct optimizer_traits {
  bool needs_whole_matrices = false;  // its rule is a factored_rule: what it keeps for a matrix cannot be divided among processes
  bool averages_weights = false;      // it keeps averages of the weights, as ema does
};
/// Those of an optimizer, or the defaults.
template <class O>
inline constexpr optimizer_traits traits_of_optimizer{};
template <class O>
  requires requires { O::traits; }
inline constexpr optimizer_traits traits_of_optimizer<O> = O::traits;

}  // namespace strata::core
