// Four neighbouring bfloat16: two words of 32 bits, as tensor cores take them.
#pragma once
#include <bit>
#include <cstdint>
#include <strata/cuda/machine/fours.hpp>
#include <strata/cuda/machine/rounded_operand.hpp>

namespace strata::machine {

/// The first of two numbers is the lower half of a word.
struct [[gnu::may_alias]] alignas(8) rounded_four {
  std::uint32_t words[2];
};

STRATA_DEVICE inline std::uint32_t rounded_pair(float first, float second) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
#else
  return bfloat16::nearest(first).bits | std::uint32_t{bfloat16::nearest(second).bits} << 16;
#endif
}
constexpr float number_of_pair(std::uint32_t pair, int which) {
  return std::bit_cast<float>(which == 0 ? pair << 16 : pair & 0xffff'0000);
}
/// Number i of both, as a pair.
STRATA_DEVICE inline std::uint32_t pair_of(const rounded_four& first, const rounded_four& second, int i) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(first.words[i / 2], second.words[i / 2], i % 2 == 0 ? 0x5410 : 0x7632);
#else
  const std::uint32_t a = first.words[i / 2], b = second.words[i / 2];
  return i % 2 == 0 ? (a & 0xffff) | b << 16 : a >> 16 | (b & 0xffff'0000);
#endif
}

/// Four bytes, of which the first is the lowest.
STRATA_DEVICE inline std::uint32_t load_bytes(const std::uint8_t* from, long i) {
  struct [[gnu::may_alias]] word {
    std::uint32_t bytes;
  };
  return reinterpret_cast<const word*>(from + i)->bytes;
}
/// Each byte twice.
STRATA_DEVICE inline rounded_four doubled_bytes(std::uint32_t bytes) {
#if defined(__CUDA_ARCH__)
  return {{__byte_perm(bytes, 0, 0x1100), __byte_perm(bytes, 0, 0x3322)}};
#else
  const auto both = [](std::uint32_t two) { return (two & 0xff) * 0x0101 | (two >> 8 & 0xff) * 0x0101'0000; };
  return {{both(bytes), both(bytes >> 16)}};
#endif
}

/// All bits of each number that is not zero.
STRATA_DEVICE inline rounded_four mask_of_nonzero(const rounded_four& all) {
  rounded_four mask;
  for (int k = 0; k < 2; ++k) {
    const std::uint32_t upper_bits = (all.words[k] & 0x7fff'7fff) + 0x7fff'7fff;  // bits 15 and 31
#if defined(__CUDA_ARCH__)
    asm("prmt.b32 %0, %1, 0, 0xbb99;" : "=r"(mask.words[k]) : "r"(upper_bits));  // repeats each of them 16 times
#else
    mask.words[k] = (upper_bits >> 15 & 0x0001'0001) * 0xffff;
#endif
  }
  return mask;
}
STRATA_DEVICE inline rounded_four operator&(const rounded_four& a, const rounded_four& b) {
  return {{a.words[0] & b.words[0], a.words[1] & b.words[1]}};
}

STRATA_DEVICE inline rounded_four load_four(const bfloat16* from, long i) {
  return *reinterpret_cast<const rounded_four*>(from + i);
}
STRATA_DEVICE inline void store_four(bfloat16* to, long i, const four<float>& values) {
  *reinterpret_cast<rounded_four*>(to +
                                   i) = {{rounded_pair(values.at[0], values.at[1]), rounded_pair(values.at[2], values.at[3])}};
}

}  // namespace strata::machine
