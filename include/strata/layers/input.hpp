// input<Extents...>: the shape of one sample. Every network starts with it; a graph has structs derived from it, one for each
// input.
#pragma once
#include <array>
#include <strata/base/shape.hpp>
#include <type_traits>

namespace strata {

namespace reasons {
inline constexpr reason input_takes_one_to_four_positive_extents{"input takes one to four positive extents"};
}  // namespace reasons

/// The batch, as an operation without inputs.  out: (Extents...)   https://keras.io/api/layers/core_layers/input
template <int... Extents>
struct input {
  static constexpr auto name = "input", class_name = "InputLayer";
  static constexpr core::expected_shape output_shape(shape) {
    if constexpr (sizeof...(Extents) < 1 || sizeof...(Extents) > 4)
      return reasons::input_takes_one_to_four_positive_extents;
    else if constexpr (((Extents < 1) || ...))
      return reasons::input_takes_one_to_four_positive_extents;
    else
      return shape{Extents...};
  }
};

namespace detail {
template <int... Extents>
input<Extents...> input_of(const input<Extents...>*);
template <class N>
inline constexpr bool is_nameless_input = false;
template <int... Extents>
inline constexpr bool is_nameless_input<input<Extents...>> = true;

/// A struct that names an input of a graph: struct image : input<28, 28, 1> {};
template <class N>
concept names_input = std::is_class_v<N> && !is_nameless_input<N> && requires { input_of(static_cast<const N*>(nullptr)); };
}  // namespace detail

}  // namespace strata
