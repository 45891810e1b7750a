// The pixels under a 2x2 window of a 3x3 convolution with one channel, from which each lane picks its own.
#pragma once
#include <cstddef>
#include <strata/cpu/simd/simd.hpp>

namespace strata::simd {

#if defined(__AVX2__)
/// The 4x4 pixels under a window, and the winner of each lane. A lane picks the pixels that the kernel reads for its winner;
/// those of a dead window have no meaning.
struct window_patch {
  /// With 512 bits, one vector has all four rows. With 256 bits, vector i has the rows i and i + 1, which are those that row i
  /// of the kernel reads.
  static constexpr int vectors = vector_bytes == 64 ? 1 : 3;
  vec<float> pixels[vectors];
  /// The index in the patch of the first pixel that the kernel reads for the winner.
  integers<float> first;

  STRATA_INLINE window_patch(const float* corner, std::ptrdiff_t row, integers<float> winner)
      : first(winner + (winner & broadcast_integer<float>(2))) {  // 0 ... 3 becomes 0, 1, 4, 5
#if defined(STRATA_AVX512)
    __m512 all = _mm512_castps128_ps512(_mm_loadu_ps(corner));
    all = _mm512_mask_broadcast_f32x4(all, 0x00f0, _mm_loadu_ps(corner + row));
    all = _mm512_mask_broadcast_f32x4(all, 0x0f00, _mm_loadu_ps(corner + 2 * row));
    all = _mm512_mask_broadcast_f32x4(all, 0xf000, _mm_loadu_ps(corner + 3 * row));
    pixels[0] = (vec<float>)all;
#else
    STRATA_UNROLL
    for (int i = 0; i < 3; ++i) {
      const __m256 upper = _mm256_castps128_ps256(_mm_loadu_ps(corner + i * row));
      pixels[i] = (vec<float>)_mm256_insertf128_ps(upper, _mm_loadu_ps(corner + (i + 1) * row), 1);
    }
#endif
  }
  /// The pixels that one tap of the kernel reads.
  STRATA_INLINE vec<float> tap(int row, int column) const {
#if defined(STRATA_AVX512)
    const __m512i lane = (__m512i)(first + broadcast_integer<float>(row * 4 + column));
    return (vec<float>)_mm512_maskz_permutexvar_ps(__mmask16(0xffff), lane, (__m512)pixels[0]);
#else
    return (vec<float>)_mm256_permutevar8x32_ps((__m256)pixels[row], (__m256i)(first + broadcast_integer<float>(column)));
#endif
  }
};
#endif

}  // namespace strata::simd
