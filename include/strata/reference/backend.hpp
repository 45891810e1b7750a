// The name of the reference backend.
#pragma once
#include <strata/base/namespaces.hpp>

namespace strata::core {

/// Plain loops, constexpr, without fusion: the tests compare every other backend with it.
struct reference {
  static constexpr auto name = "reference";
};

}  // namespace strata::core
