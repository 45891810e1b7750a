// The names of the CPU backends.
#pragma once

namespace strata {

/// Plain loops, constexpr, nothing fused: the oracle of all other backends.
struct reference {
  static constexpr auto name = "reference";
};

/// Vectorised and fused kernels; where it has none, those of `reference` serve.
struct cpu {
  static constexpr auto name = "cpu";
  using base = reference;
};

}  // namespace strata
