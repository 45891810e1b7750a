// A type without state.
#pragma once

namespace strata::detail {

/// Replaces a member that a specialisation does not need, with [[no_unique_address]].
struct empty {};

}  // namespace strata::detail
