// The elements that libraries multiply when their algorithms are measured.
#pragma once
#include <cstdint>
#include <strata/cuda/machine/rounded_operand.hpp>

namespace strata::machine::detail {

/// Fills an array with pseudo-random values in [-1, 1).
struct fill_with_numbers {
  void* to;
  bool halves;
  static constexpr float number(long i) {
    auto bits = std::uint32_t(i) * 2654435761u;
    bits ^= bits >> 15, bits *= 2246822519u, bits ^= bits >> 13;
    return float(bits >> 8) * 0x1p-23f - 1;
  }
  constexpr void store(long i, float x) const {
    if (halves)
      static_cast<bfloat16*>(to)[i] = bfloat16::nearest(x);
    else
      static_cast<float*>(to)[i] = x;
  }
  constexpr void operator()(long i) const { store(i, number(i)); }
};

}  // namespace strata::machine::detail
