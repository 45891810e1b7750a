// How a product of matrices rounds its operands, as tensor cores do.
#pragma once
#include <bit>
#include <cstdint>
#include <strata/base/precision.hpp>
#include <type_traits>

namespace strata::machine {

/// The upper half of a float.
struct bfloat16 {
  std::uint16_t bits;

  /// Rounds to nearest, ties to even, as the instruction cvt.rn.bf16.f32 does. A nan stays nan.
  static constexpr bfloat16 nearest(float x) {
    const auto all = std::bit_cast<std::uint32_t>(x);
    if ((all & 0x7fff'ffff) > 0x7f80'0000) return {std::uint16_t((all | 0x0040'0000) >> 16)};
    return {std::uint16_t((all + 0x7fff + (all >> 16 & 1)) >> 16)};
  }
  constexpr operator float() const { return std::bit_cast<float>(std::uint32_t(bits) << 16); }
};

/// A number as an array of Element stores it.
template <class Element, class T>
constexpr Element stored_as(T x) {
  if constexpr (std::is_same_v<Element, bfloat16>)
    return bfloat16::nearest(x);
  else
    return x;
}

/// Rounds to nearest, ties away from zero, as the instruction cvt.rna.tf32.f32 does. A nan and an infinity stay what they are.
constexpr float nearest_tf32(float x) {
  if (x != x) return x;
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(x) + 0x1000) & ~std::uint32_t{0x1fff});
}

template <class P>
inline constexpr bool rounds_to_bfloat16 = std::is_same_v<P, precision::mixed_bf16>;

/// An element of a factor as the policy P multiplies it.
template <class P, class T>
constexpr T rounded_operand(T x) {
  return x;
}
template <>
constexpr float rounded_operand<precision::mixed_bf16>(float x) {
  return float(bfloat16::nearest(x));
}
template <>
constexpr float rounded_operand<precision::tf32>(float x) {
  return nearest_tf32(x);
}

}  // namespace strata::machine
