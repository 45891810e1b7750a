// branch<items...>: layers in a row, for the joins (add, average, concat, maximum, multiply, subtract).
#pragma once
#include <strata/base/shape.hpp>

namespace strata {

namespace reasons {
inline constexpr reason a_join_needs_at_least_one_branch{"a join needs at least one branch"};
}  // namespace reasons

/// Layers in a row: one input of a join. All branches of a join share one input. An empty branch is the identity.
template <class... Items>
struct branch {};

namespace core {
/// A layer that joins branches: `template <class... Branches> struct add`. Members:
///   `join`        the operation; its `output_shape` takes the shapes of all branches
///   `operations`  type_list<join>
///   `name`, `class_name`  as for every layer
///   `branches`    optional: a type_list of branches, if these are not the arguments
///   `why(first, last)`  optional: the reason why the branches do not go together, of the shapes of the first and the last one
template <class L>
concept join_layer = requires { typename L::join; };
}  // namespace core

}  // namespace strata
