// The name of the CPU backend.
#pragma once
#include <strata/reference/backend.hpp>

namespace strata::core {

/// Vectorised and fused kernels. An operation without a kernel here uses that of `reference`.
struct cpu {
  static constexpr auto name = "cpu";
  using base = reference;
};

}  // namespace strata::core
