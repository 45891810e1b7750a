// maximum<branch<...>, branch<...>>: the largest of branches, element by element.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/layers/elementwise_join.hpp>

namespace strata {

namespace reasons {
inline constexpr reason maximum_takes_branches_of_equal_shape{"maximum takes branches of the same shape"};
}  // namespace reasons

namespace core {
/// y = max(x[0], x[1], ...); nan if an input is nan. The gradient goes to the largest input, and if several are equal to the
/// first of them, as in Keras with TensorFlow (with JAX or PyTorch, Keras shares it among them).
struct largest_of_branches : elementwise_join_base<reasons::maximum_takes_branches_of_equal_shape> {
  static constexpr auto name = "maximum";
  static constexpr bool reads_input = true;

  template <class T, class V, int N>
  static constexpr V value(const V (&x)[N]) {
    V largest = x[0];
    for (int k = 1; k < N; ++k) {
      const V larger = largest >= x[k] ? largest : x[k];  // x[k] if that is nan
      largest = largest == largest ? larger : largest;    // nan stays nan
    }
    return largest;
  }
  template <class T, class V, int N>
  static constexpr void gradients(const V (&x)[N], const V& dy, V (&dx)[N]) {
    const V largest = value<T>(x), zero{};
    V rest = dy;
    for (int k = 0; k < N - 1; ++k) {
      dx[k] = x[k] == largest ? rest : zero;
      rest = x[k] == largest ? zero : rest;
    }
    dx[N - 1] = rest;
  }
};
}  // namespace core

/// in: equal shapes  out: the same shape.  https://keras.io/api/layers/merging_layers/maximum
template <class... Branches>
struct maximum {
  static constexpr auto name = "maximum", class_name = "Maximum";
  using join = core::largest_of_branches;
  using operations = core::type_list<join>;
};

}  // namespace strata
