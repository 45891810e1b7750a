// add<branch<...>, branch<...>>: the sum of branches.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/layers/elementwise_join.hpp>

namespace strata {

namespace reasons {
inline constexpr reason add_takes_branches_of_equal_shape{
    "add takes branches of the same shape: use same_padding, or a 1x1 conv2d on the short cut"};
}  // namespace reasons

namespace core {
/// y = x[0] + x[1] + ...
struct sum_of_branches : elementwise_join_base<reasons::add_takes_branches_of_equal_shape> {
  static constexpr auto name = "add";

  template <class T, class V, int N>
  static constexpr V value(const V (&x)[N]) {
    V sum = x[0];
    for (int k = 1; k < N; ++k) sum += x[k];
    return sum;
  }
  template <class T, class V, int N>
  static constexpr void gradients(const V (&)[N], const V& dy, V (&dx)[N]) {
    for (V& d : dx) d = dy;
  }
};
}  // namespace core

/// in: equal shapes  out: the same shape.  https://keras.io/api/layers/merging_layers/add
template <class... Branches>
struct add {
  static constexpr auto name = "add", class_name = "Add";
  using join = core::sum_of_branches;
  using operations = core::type_list<join>;
};

}  // namespace strata
