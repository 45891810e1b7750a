// An operation that takes nothing: what a layer becomes when its template arguments make no sense.
#pragma once
#include <strata/base/shape.hpp>

namespace strata::detail {

/// Refuses every shape, so that the network names the layer, its place and the reason.
template <const reason& Why>
struct refused {
  static constexpr auto name = "refused";
  static constexpr expected_shape output_shape(shape) { return Why; }
};

}  // namespace strata::detail
