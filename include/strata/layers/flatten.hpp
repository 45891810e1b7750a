// flatten: all elements in one row.
#pragma once
#include <strata/concepts/operation.hpp>

namespace strata {

/// in: any shape  out: (number of elements). The memory stays the same.  https://keras.io/api/layers/reshaping_layers/flatten
struct flatten {
  static constexpr auto name = "flatten", class_name = "Flatten";
  static constexpr core::operation_traits traits{.is_view = true, .makes = core::value_range::those_of_its_input};
  static constexpr core::expected_shape output_shape(shape in) { return shape{in.size()}; }
};

}  // namespace strata
