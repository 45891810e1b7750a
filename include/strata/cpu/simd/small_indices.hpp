// Small indices of one byte each, widened to vectors of integers.
#pragma once
#include <strata/cpu/simd/elementwise.hpp>

namespace strata::simd {

/// Indices 0 ... 127, one per lane, n of them.
template <class T>
STRATA_INLINE inline integers<T> load_indices(const std::int8_t* p, whole_vector<T>) {
  return load_bytes<T>(p);
}
template <class T>
STRATA_INLINE inline integers<T> load_indices(const std::int8_t* p, part_of_vector<T> lane) {
  return load_first_bytes<T>(p, lane.count);
}

template <class T>
STRATA_INLINE inline void store_indices(std::int8_t* p, integers<T> v, whole_vector<T>) {
  store_bytes<T>(p, v);
}
template <class T>
STRATA_INLINE inline void store_indices(std::int8_t* p, integers<T> v, part_of_vector<T> lane) {
#if defined(STRATA_AVX512)
  if constexpr (sizeof(T) == 4)
    _mm512_mask_cvtepi32_storeu_epi8(p, static_cast<__mmask16>((1u << lane.count) - 1), (__m512i)v);
  else
    _mm512_mask_cvtepi64_storeu_epi8(p, static_cast<__mmask8>((1u << lane.count) - 1), (__m512i)v);
#else
  std::int8_t bytes[lanes<T>];
  store_bytes<T>(bytes, v);
  std::memcpy(p, bytes, static_cast<std::size_t>(lane.count));
#endif
}

}  // namespace strata::simd
