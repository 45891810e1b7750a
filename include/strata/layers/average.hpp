// average<branch<...>, branch<...>>: the mean of branches.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/layers/elementwise_join.hpp>

namespace strata {

namespace reasons {
inline constexpr reason average_takes_branches_of_equal_shape{"average takes branches of the same shape"};
}  // namespace reasons

namespace core {
/// y = (x[0] + x[1] + ...) / N
struct mean_of_branches : elementwise_join_base<reasons::average_takes_branches_of_equal_shape> {
  static constexpr auto name = "average";

  template <class T, class V, int N>
  static constexpr V value(const V (&x)[N]) {
    V sum = x[0];
    for (int k = 1; k < N; ++k) sum += x[k];
    return sum / T(N);
  }
  template <class T, class V, int N>
  static constexpr void gradients(const V (&)[N], const V& dy, V (&dx)[N]) {
    for (V& d : dx) d = dy / T(N);
  }
};
}  // namespace core

/// in: equal shapes  out: the same shape.  https://keras.io/api/layers/merging_layers/average
template <class... Branches>
struct average {
  static constexpr auto name = "average", class_name = "Average";
  using join = core::mean_of_branches;
  using operations = core::type_list<join>;
};

}  // namespace strata
