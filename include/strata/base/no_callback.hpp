// The default of optional callbacks.
#pragma once

namespace strata::detail {

/// A callback that does nothing.
struct no_callback {
  constexpr void operator()(int) const {}
};

}  // namespace strata::detail
