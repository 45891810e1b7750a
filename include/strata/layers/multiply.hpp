// multiply<branch<...>, branch<...>>: the product of branches, such as a gate and what it gates.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/layers/elementwise_join.hpp>

namespace strata {

namespace reasons {
inline constexpr reason multiply_takes_branches_of_equal_shape{"multiply takes branches of the same shape"};
}  // namespace reasons

namespace core {
/// y = x[0] * x[1] * ...
struct product_of_branches : elementwise_join_base<reasons::multiply_takes_branches_of_equal_shape> {
  static constexpr auto name = "multiply";
  static constexpr bool reads_input = true;

  template <class T, class V, int N>
  static constexpr V value(const V (&x)[N]) {
    V product = x[0];
    for (int k = 1; k < N; ++k) product *= x[k];
    return product;
  }
  /// dx[k] = dy times all other factors, without a division: the factors before k are multiplied first, those after k are in
  /// `after`.
  template <class T, class V, int N>
  static constexpr void gradients(const V (&x)[N], const V& dy, V (&dx)[N]) {
    V before[N];
    before[0] = x[0];
    for (int k = 1; k < N; ++k) before[k] = before[k - 1] * x[k];
    V after = dy;
    for (int k = N - 1; k > 0; --k) {
      dx[k] = after * before[k - 1];
      after *= x[k];
    }
    dx[0] = after;
  }
};
}  // namespace core

/// in: equal shapes  out: the same shape.  https://keras.io/api/layers/merging_layers/multiply
template <class... Branches>
struct multiply {
  static constexpr auto name = "multiply", class_name = "Multiply";
  using join = core::product_of_branches;
  using operations = core::type_list<join>;
};

}  // namespace strata
