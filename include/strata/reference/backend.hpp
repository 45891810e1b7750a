// The name of the reference backend.
#pragma once

namespace strata {

/// Plain loops, constexpr, without fusion: the tests compare every other backend with it.
struct reference {
  static constexpr auto name = "reference";
};

}  // namespace strata
