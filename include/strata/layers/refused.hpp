// The operation of a layer whose template arguments are wrong.
#pragma once
#include <strata/base/shape.hpp>

namespace strata::detail {

/// Refuses every shape. The network then reports the layer, its index and the reason.
template <const reason& Why>
struct refused {
  static constexpr auto name = "refused";
  static constexpr expected_shape output_shape(shape) { return Why; }
};

}  // namespace strata::detail
