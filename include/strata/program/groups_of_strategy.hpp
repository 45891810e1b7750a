// How many groups of processes or threads divide a batch.
#pragma once
#include <type_traits>

namespace strata::detail {

/// True for a static member `groups`. placed::groups is a data member and does not count.
template <class Of>
concept has_constant_groups = requires { requires std::is_same_v<decltype(&Of::groups), const int*>; };

/// `Strategy::groups`, or one. No second constrained specialization of a variable template: nvcc 13 refuses it.
template <class Strategy>
inline constexpr int groups_of_strategy = [] {
  if constexpr (has_constant_groups<Strategy>)
    return Strategy::groups;
  else
    return 1;
}();

}  // namespace strata::detail
