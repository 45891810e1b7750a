// Pairs of bfloat16 numbers and their dot product, accumulated in float: with AVX512_BF16, or without it and with the same bits.
#pragma once
#include <strata/cpu/simd/simd.hpp>

namespace strata::simd {

/// Two bfloat16 numbers, the first one in the lower half. They are stored in buffers of floats.
typedef std::uint32_t bf16_pair __attribute__((may_alias));
/// One pair for each lane of a vec<float>.
using bf16_pairs = integers<float>;

/// Two implementations with the same bits, provided that denormals are flushed, as the instruction does. Tests compare them.
struct bf16_by_software {
  /// Rounds each float to bfloat16, to nearest, ties to even. A nan stays nan.
  STRATA_INLINE static bf16_pairs upper(vec<float> x) {
    const bf16_pairs bits = (bf16_pairs)x, even = bits >> 16 & 1;
    const bf16_pairs size = bits & 0x7fff'ffff, nan = size > 0x7f80'0000, denormal = size < 0x0080'0000;
    const bf16_pairs rounded = (bits + 0x7fff + even) & ~0xffff;
    return nan ? (bits | 0x0040'0000) & ~0xffff : denormal ? bits & ~0x7fff'ffff : rounded;
  }
  STRATA_INLINE static bf16_pairs lower(vec<float> x) { return upper(x) >> 16 & 0xffff; }
  /// Rounds lanes<float> neighbouring floats to half as many pairs.
  STRATA_INLINE static void store_row(bf16_pair* to, vec<float> x) {
    typedef std::uint16_t halves __attribute__((vector_size(vector_bytes / 2)));
    const halves h = __builtin_convertvector(lower(x), halves);
    std::memcpy(to, &h, sizeof h);
  }

  /// The same for twice as many floats; the pairs stay in a register.
  STRATA_INLINE static bf16_pairs row(vec<float> low, vec<float> high) {
    return [&]<int... I>(std::integer_sequence<int, I...>) STRATA_INLINE {
      return lower(shuffled<vec<float>>(low, high, std::integer_sequence<int, 2 * I...>{})) |
             upper(shuffled<vec<float>>(low, high, std::integer_sequence<int, 2 * I + 1 ...>{}));
    }(std::make_integer_sequence<int, lanes<float>>{});
  }

  /// sum + a.second * b.second, then + a.first * b.first, each rounded once. Without fused operations, results differ only where
  /// a product is too large or too small for a float.
  STRATA_INLINE static vec<float> dot(vec<float> sum, bf16_pairs a, bf16_pairs b) {
    sum = multiply_add((vec<float>)(a & ~0xffff), (vec<float>)(b & ~0xffff), sum);
    return multiply_add((vec<float>)(a << 16), (vec<float>)(b << 16), sum);
  }
  /// Combines 2 * lanes<float> elements of two rows a and b to pairs (of a, of b), in the order that `place` returns.
  STRATA_INLINE static void interleave(bf16_pairs a, bf16_pairs b, bf16_pairs& low, bf16_pairs& high) {
    low = (a & 0xffff) | b << 16;
    high = (a >> 16 & 0xffff) | (b & ~0xffff);
  }
  /// Lane i of `low` holds element place(i) of both rows, lane i of `high` element place(lanes + i).
  static constexpr int place(int i) { return i < lanes<float> ? 2 * i : 2 * (i - lanes<float>)+1; }
};

#if defined(STRATA_AVX512) && defined(__AVX512BF16__)
struct bf16_by_instruction {
  STRATA_INLINE static bf16_pairs lower(vec<float> x) {
    return (bf16_pairs)_mm512_maskz_cvtepu16_epi32(0xffff, (__m256i)_mm512_cvtneps_pbh((__m512)x));
  }
  STRATA_INLINE static bf16_pairs upper(vec<float> x) { return lower(x) << 16; }
  STRATA_INLINE static void store_row(bf16_pair* to, vec<float> x) {
    const auto h = _mm512_cvtneps_pbh((__m512)x);
    std::memcpy(to, &h, sizeof h);
  }
  STRATA_INLINE static bf16_pairs row(vec<float> low, vec<float> high) {
    return (bf16_pairs)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low);
  }
  STRATA_INLINE static vec<float> dot(vec<float> sum, bf16_pairs a, bf16_pairs b) {
    return (vec<float>)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
  }
  STRATA_INLINE static void interleave(bf16_pairs a, bf16_pairs b, bf16_pairs& low, bf16_pairs& high) {
    low = (bf16_pairs)_mm512_unpacklo_epi16((__m512i)a, (__m512i)b);
    high = (bf16_pairs)_mm512_unpackhi_epi16((__m512i)a, (__m512i)b);
  }
  static constexpr int place(int i) { return i % 16 / 4 * 8 + i % 4 + i / 16 * 4; }
};
using bf16 = bf16_by_instruction;
#else
using bf16 = bf16_by_software;
#endif

template <class B>
STRATA_INLINE inline bf16_pairs make_pairs(vec<float> first, vec<float> second) {
  return B::lower(first) | B::upper(second);
}
STRATA_INLINE inline bf16_pairs load_pairs(const bf16_pair* p) { return (bf16_pairs)load(reinterpret_cast<const float*>(p)); }
STRATA_INLINE inline void store_pairs(bf16_pair* p, bf16_pairs v) { store(reinterpret_cast<float*>(p), (vec<float>)v); }
STRATA_INLINE inline bf16_pairs broadcast_pair(bf16_pair p) { return broadcast_integer<float>(static_cast<std::int32_t>(p)); }

/// sum[r][v] += the dot product of pair a[r][at] and vector v of the row of pairs at b: one step of a product in R x V registers.
template <class B, int R, int V>
STRATA_INLINE inline void accumulate_pairs(vec<float> (&sum)[R][V], const bf16_pair* const (&a)[R], std::ptrdiff_t at,
                                           const bf16_pair* b) {
  bf16_pairs w[V];
  STRATA_UNROLL
  for (int v = 0; v < V; ++v) {
    w[v] = load_pairs(b + v * lanes<float>);
    keep(w[v]);
  }
  STRATA_UNROLL
  for (int r = 0; r < R; ++r) {
    bf16_pairs x = broadcast_pair(a[r][at]);
    if constexpr (V > 1) keep(x);
    STRATA_UNROLL
    for (int v = 0; v < V; ++v) sum[r][v] = B::dot(sum[r][v], x, w[v]);
  }
}

/// Rounds n neighbouring floats to pairs. Fills up the last vector with zeros.
template <class B>
[[gnu::noinline]] void round_row(const float* from, int n, bf16_pair* to) {
  constexpr int L = lanes<float>;
  int i = 0;
  for (; i + L <= n; i += L) B::store_row(to + i / 2, load(from + i));
  if (i < n) B::store_row(to + i / 2, load_first(from + i, n - i));
}

}  // namespace strata::simd
