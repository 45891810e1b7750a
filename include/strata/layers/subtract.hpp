// subtract<branch<...>, branch<...>>: the first branch minus the second.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/layers/elementwise_join.hpp>

namespace strata {

namespace reasons {
inline constexpr reason subtract_takes_branches_of_equal_shape{"subtract takes branches of the same shape"};
inline constexpr reason subtract_takes_two_branches{"subtract takes exactly two branches"};
}  // namespace reasons

namespace core {
/// y = x[0] - x[1]
struct difference_of_branches : elementwise_join_base<reasons::subtract_takes_branches_of_equal_shape> {
  static constexpr auto name = "subtract";

  static constexpr expected_shape output_shape(std::span<const shape> in) {
    if (in.size() != 2) return reasons::subtract_takes_two_branches;
    return elementwise_join_base::output_shape(in);
  }
  template <class T, class V>
  static constexpr V value(const V (&x)[2]) {
    return x[0] - x[1];
  }
  template <class T, class V>
  static constexpr void gradients(const V (&)[2], const V& dy, V (&dx)[2]) {
    dx[0] = dy;
    dx[1] = -dy;
  }
};
}  // namespace core

/// in: two equal shapes  out: the same shape.  https://keras.io/api/layers/merging_layers/subtract
template <class... Branches>
struct subtract {
  static constexpr auto name = "subtract", class_name = "Subtract";
  using join = core::difference_of_branches;
  using operations = core::type_list<join>;
};

}  // namespace strata
