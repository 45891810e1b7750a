// Gradients on the wire in bfloat16, with error feedback: what rounding takes away is added to what is sent next.
#pragma once
#include <bit>
#include <cstdint>
#include <strata/base/namespaces.hpp>

namespace strata {

namespace detail {
/// The upper half of a float, rounded to nearest, ties to even; a nan stays one.
constexpr std::uint16_t bf16_of(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const bool nan = (bits & 0x7fff'ffff) > 0x7f80'0000;
  return static_cast<std::uint16_t>((nan ? bits | 0x0040'0000 : bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
constexpr float float_of(std::uint16_t upper) { return std::bit_cast<float>(std::uint32_t(upper) << 16); }
}  // namespace detail

namespace core {
/// to[i] = from[i] + residue[i], rounded; the rest is the new residue. Seide et al., "1-bit stochastic gradient descent" (2014);
/// that it converges as if nothing were rounded: Karimireddy et al., "Error feedback fixes SignSGD" (2019).
template <class T>
void round_with_residue(const T* from, T* residue, std::uint16_t* to, long count) {
  for (long i = 0; i < count; ++i) {
    const T wanted = from[i] + residue[i];
    const std::uint16_t sent = detail::bf16_of(static_cast<float>(wanted));
    to[i] = sent;
    residue[i] = (sent & 0x7f80) == 0x7f80 ? T{} : wanted - T(detail::float_of(sent));  // infinity leaves no rest
  }
}

template <class T>
void expand_rounded(const std::uint16_t* from, T* to, long count) {
  for (long i = 0; i < count; ++i) to[i] = T(detail::float_of(from[i]));
}
}  // namespace core

}  // namespace strata
