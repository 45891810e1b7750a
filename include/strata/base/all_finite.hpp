// Tests of numbers and arrays for nan and infinity.
#pragma once
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace strata::detail {

/// True if all values are finite. Compares exponents as integers, which vectorises, and which -ffast-math cannot remove.
template <std::floating_point T>
constexpr bool all_finite(const T* x, std::size_t n) {
  if constexpr (sizeof(T) == 4 || sizeof(T) == 8) {
    using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    constexpr bits sign = bits{1} << (8 * sizeof(T) - 1), infinity = std::bit_cast<bits>(std::numeric_limits<T>::infinity());
    bits most = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const bits b = std::bit_cast<bits>(x[i]) & ~sign;
      most = most < b ? b : most;
    }
    return most < infinity;
  } else {
    for (std::size_t i = 0; i < n; ++i)
      if (!std::isfinite(x[i])) return false;
    return true;
  }
}
template <std::floating_point T>
constexpr bool is_finite(T x) {
  return all_finite(&x, 1);
}

}  // namespace strata::detail
