// input<Extents...>: the shape of one sample. Every network starts with it.
#pragma once
#include <array>
#include <strata/base/shape.hpp>

namespace strata {

namespace reasons {
inline constexpr reason input_takes_one_to_four_positive_extents{"input takes one to four positive extents"};
}  // namespace reasons

/// The batch, as an operation without inputs.  out: (Extents...)   https://keras.io/api/layers/core_layers/input
template <int... Extents>
struct input {
  static constexpr auto name = "input", class_name = "InputLayer";
  static constexpr expected_shape output_shape(shape) {
    if constexpr (sizeof...(Extents) < 1 || sizeof...(Extents) > 4)
      return reasons::input_takes_one_to_four_positive_extents;
    else if constexpr (((Extents < 1) || ...))
      return reasons::input_takes_one_to_four_positive_extents;
    else
      return shape{Extents...};
  }
};

}  // namespace strata
