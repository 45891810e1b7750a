// add<branch<...>, branch<...>>, concat<...>, residual<...>: the branches share one input and meet in a join.
#pragma once
#include <span>
#include <strata/base/meta.hpp>
#include <strata/base/shape.hpp>

namespace strata {

inline constexpr reason add_takes_branches_of_equal_shape{
    "all branches of add must end in the same shape: use same_padding, or a 1x1 conv2d on the short cut"};
inline constexpr reason concat_takes_branches_that_differ_only_in_channels{
    "branches of concat may differ in the last extent only"};
inline constexpr reason a_join_needs_at_least_one_branch{"add and concat need at least one branch"};

/// Layers in a row. An empty branch is the identity.
template <class... Items>
struct branch {};

/// in: equal shapes  out: the same
struct sum_of_branches {
  static constexpr auto name = "add";
  static constexpr expected_shape output_shape(std::span<const shape> in) {
    if (in.empty()) return a_join_needs_at_least_one_branch;
    for (const shape& s : in)
      if (s != in[0]) return add_takes_branches_of_equal_shape;
    return in[0];
  }
};

/// in: (..., C1), (..., C2), ...  out: (..., C1 + C2 + ...)
struct stack_of_branches {
  static constexpr auto name = "concat";
  static constexpr expected_shape output_shape(std::span<const shape> in) {
    if (in.empty()) return a_join_needs_at_least_one_branch;
    shape out = in[0];
    const int last = out.rank() - 1;
    for (shape s : in.subspan(1)) {
      if (s.rank() != out.rank()) return concat_takes_branches_that_differ_only_in_channels;
      out[last] += s[last];
      s[last] = in[0][last];
      if (s != in[0]) return concat_takes_branches_that_differ_only_in_channels;
    }
    return out;
  }
};

/// The sum of all branches.  https://keras.io/api/layers/merging_layers/add
template <class... Branches>
struct add {
  static constexpr auto name = "add", class_name = "Add";
  using join = sum_of_branches;
  using operations = list<join>;
};

/// The channels of all branches, one after the other.  https://keras.io/api/layers/merging_layers/concatenate
template <class... Branches>
struct concat {
  static constexpr auto name = "concatenate", class_name = "Concatenate";
  using join = stack_of_branches;
  using operations = list<join>;
};

/// Items... plus a short cut around them (He et al., "Deep residual learning", 2016).
template <class... Items>
using residual = add<branch<Items...>, branch<>>;

}  // namespace strata
