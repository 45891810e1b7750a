// Which outputs of a fused convolution + relu + pooling are alive: the sparse format of its backward.
#pragma once
#include <cstdint>
#include <cstring>
#include <strata/cpu/simd/simd.hpp>

namespace strata::simd {

/// The winner of each 2x2 window, row by row: 0 ... 3, or `dead` where relu returned 0.
inline constexpr std::int8_t dead = 4;

/// Bit p of windows[p / 32][filter]: window p is alive.
[[gnu::noinline]] inline void alive_windows(const std::int8_t* winner, int windows, int filters, std::uint32_t* to) {
  using I = integers<float>;
  constexpr int L = lanes<float>;
  for (int first = 0; first < windows; first += 32, to += filters) {
    const int last = windows - first < 32 ? windows : first + 32;
    int f = 0;
    for (; f + L <= filters; f += L) {
      I bits{};
      for (int p = first; p < last; ++p) {
        const I alive = load_bytes<float>(winner + std::ptrdiff_t(p) * filters + f) < broadcast_integer<float>(dead);
        bits |= alive & broadcast_integer<float>(static_cast<std::int32_t>(1u << (p - first)));
      }
      std::memcpy(to + f, &bits, sizeof bits);
    }
    for (; f < filters; ++f) {
      to[f] = 0;
      for (int p = first; p < last; ++p)
        if (winner[std::ptrdiff_t(p) * filters + f] < dead) to[f] |= 1u << (p - first);
    }
  }
}

namespace detail {
/// Bit i: bytes[i] == value, for 64 bytes of 0 ... 4.
STRATA_INLINE inline std::uint64_t equal_bytes(const std::int8_t* bytes, int value) {
#if defined(STRATA_AVX512)
  return _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(bytes), _mm512_set1_epi8(static_cast<char>(value)));
#elif defined(__AVX2__)
  const __m256i wanted = _mm256_set1_epi8(static_cast<char>(value));
  const auto bits = [&](const std::int8_t* p) {
    const __m256i equal = _mm256_cmpeq_epi8(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), wanted);
    return static_cast<std::uint32_t>(_mm256_movemask_epi8(equal));
  };
  return bits(bytes) | std::uint64_t(bits(bytes + 32)) << 32;
#else
  std::uint64_t bits = 0;
  for (int i = 0; i < 64; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes + i, 8);
    word ^= 0x0101010101010101u * static_cast<unsigned>(value);  // equal bytes become 0, others 1 ... 7
    const std::uint64_t zero = ((word + 0x7f7f7f7f7f7f7f7fu) >> 7 & 0x0101010101010101u) ^ 0x0101010101010101u;
    bits |= (zero * 0x0102040810204080u >> 56) << i;  // collects the lowest bits of the eight bytes
  }
  return bits;
#endif
}
}  // namespace detail

constexpr int filter_words(int filters) { return (filters + 63) / 64; }

/// Bit f of to[window][pixel 0 ... 3][f / 64]: the winner of filter f in this window is this pixel.
[[gnu::noinline]] inline void alive_filters(const std::int8_t* winner, int windows, int filters, std::uint64_t* to) {
  const int words = filter_words(filters);
  std::int8_t rest[64];
  for (int p = 0; p < windows; ++p, to += 4 * words)
    for (int word = 0; word < words; ++word) {
      const std::int8_t* from = winner + std::ptrdiff_t(p) * filters + word * 64;
      if (const int n = filters - word * 64; n < 64) {
        std::memset(rest, dead, sizeof rest);
        std::memcpy(rest, from, static_cast<std::size_t>(n));
        from = rest;
      }
      for (int q = 0; q < 4; ++q) to[q * words + word] = detail::equal_bytes(from, q);
    }
}

}  // namespace strata::simd
