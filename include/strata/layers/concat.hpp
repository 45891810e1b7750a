// concat<branch<...>, branch<...>>: the channels of all branches side by side.
#pragma once
#include <span>
#include <strata/base/meta.hpp>
#include <strata/layers/branch.hpp>

namespace strata {

namespace reasons {
inline constexpr reason concat_takes_branches_that_differ_only_in_channels_use_same_padding{
    "branches of concat may differ in the last extent only: use same_padding, or crop or pool the larger image"};
}  // namespace reasons

namespace core {
/// in: (..., C1), (..., C2), ...  out: (..., C1 + C2 + ...)
struct stack_of_branches {
  static constexpr auto name = "concat";
  static constexpr expected_shape output_shape(std::span<const shape> in) {
    if (in.empty()) return reasons::a_join_needs_at_least_one_branch;
    shape out = in[0];
    const int last = out.rank() - 1;
    for (shape s : in.subspan(1)) {
      if (s.rank() != out.rank()) return reasons::concat_takes_branches_that_differ_only_in_channels_use_same_padding;
      out[last] += s[last];
      s[last] = in[0][last];
      if (s != in[0]) return reasons::concat_takes_branches_that_differ_only_in_channels_use_same_padding;
    }
    return out;
  }
};
}  // namespace core

/// in: (..., C1), (..., C2), ...  out: (..., C1 + C2 + ...).  https://keras.io/api/layers/merging_layers/concatenate
template <class... Branches>
struct concat {
  static constexpr auto name = "concatenate", class_name = "Concatenate";
  using join = core::stack_of_branches;
  using operations = core::type_list<join>;
};

}  // namespace strata
