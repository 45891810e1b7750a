// The random words of base/random.hpp, for several counters at a time.
#pragma once
#include <strata/base/random.hpp>
#include <strata/cpu/simd/simd.hpp>

namespace strata::simd {

namespace detail {
typedef std::uint64_t counters __attribute__((vector_size(vector_bytes)));

/// The products of the lower halves of all lanes.
STRATA_INLINE inline counters multiply_halves(counters a, std::uint32_t b) {
#if defined(STRATA_AVX512)
  return (counters)_mm512_maskz_mul_epu32(__mmask8(0xff), (__m512i)a, _mm512_set1_epi64(b));
#elif defined(__AVX2__)
  return (counters)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(b));
#else
  return (a & 0xffffffffu) * b;
#endif
}
template <int First, int... I>
STRATA_INLINE inline counters in_turn(counters a, counters b, std::integer_sequence<int, I...>) {
  return shuffled<counters>(a, b, std::integer_sequence<int, (First + I / 2 + I % 2 * int(sizeof...(I)))...>{});
}
}  // namespace detail

/// The words of one call of philox_words: four per counter.
inline constexpr int words_at_a_time = vector_bytes / 2;

/// The words of philox for the counters (high, low), (high, low + 1), ...
STRATA_INLINE inline void philox_words(philox generator, std::uint32_t low, std::uint64_t high, std::uint32_t* words) {
  using detail::counters;
  constexpr int n = vector_bytes / 8;
  // Only the lower half of each lane is read.
  counters c0{}, c1{}, c2 = counters{} + (high & 0xffffffffu), c3 = counters{} + (high >> 32);
  STRATA_UNROLL
  for (int i = 0; i < n; ++i) c0[int(i)] = low + std::uint32_t(i);
  auto k0 = std::uint32_t(generator.key), k1 = std::uint32_t(generator.key >> 32);
  for (int round = 0; round < 10; ++round) {
    const counters a = detail::multiply_halves(c0, 0xD2511F53u), b = detail::multiply_halves(c2, 0xCD9E8D57u);
    c0 = (b >> 32) ^ c1 ^ k0, c2 = (a >> 32) ^ c3 ^ k1;
    c1 = b, c3 = a;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  const counters first = (c0 & 0xffffffffu) | c1 << 32, second = (c2 & 0xffffffffu) | c3 << 32;
  using all = std::make_integer_sequence<int, n>;
  const counters in_order[2] = {detail::in_turn<0>(first, second, all{}), detail::in_turn<n / 2>(first, second, all{})};
  std::memcpy(words, in_order, sizeof in_order);
}

}  // namespace strata::simd
