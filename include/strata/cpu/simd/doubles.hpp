// Elements of any precision as vectors of doubles, for sums that must be exact: the statistics of a batch, norms, penalties.
#pragma once
#include <strata/cpu/simd/simd.hpp>

namespace strata::simd {

namespace detail {
typedef float half_vector __attribute__((vector_size(vector_bytes / 2)));

template <int First, int... I>
STRATA_INLINE inline half_vector half_of(vec<float> v, std::integer_sequence<int, I...>) {
  return shuffled<half_vector>(v, v, std::integer_sequence<int, (First + I)...>{});
}

// g++ 12 converts vectors of 64 bytes in two halves.
STRATA_INLINE inline vec<double> to_doubles(half_vector v) {
#if defined(STRATA_AVX512)
  return (vec<double>)_mm512_maskz_cvtps_pd(__mmask8(0xff), (__m256)v);
#else
  return __builtin_convertvector(v, vec<double>);
#endif
}
STRATA_INLINE inline half_vector from_doubles(vec<double> v) {
#if defined(STRATA_AVX512)
  return (half_vector)_mm512_maskz_cvtpd_ps(__mmask8(0xff), (__m512d)v);
#else
  return __builtin_convertvector(v, half_vector);
#endif
}
}  // namespace detail

/// The number of vectors of doubles that the elements of one vec<T> fill.
template <class T>
inline constexpr int double_parts = int(sizeof(double) / sizeof(T));

/// Part K of a vector, as doubles.
template <class T, int K>
STRATA_INLINE inline vec<double> part_as_doubles(vec<T> v) {
  constexpr int L = lanes<double>;
  if constexpr (sizeof(T) == sizeof(double))
    return v;
  else
    return detail::to_doubles(detail::half_of<K * L>(v, std::make_integer_sequence<int, L>{}));
}

/// Loads n <= lanes<double> elements; the other lanes are zero.
template <class T>
STRATA_INLINE inline vec<double> load_as_doubles(const T* p, int n) {
  if constexpr (sizeof(T) == sizeof(double)) {
    return load_first(p, n);
  } else {
    detail::half_vector half{};
    if (n == lanes<double>)
      std::memcpy(&half, p, sizeof half);
    else
      std::memcpy(&half, p, sizeof(T) * static_cast<std::size_t>(n));
    return detail::to_doubles(half);
  }
}
template <class T>
STRATA_INLINE inline void store_doubles(T* p, vec<double> v, int n) {
  if constexpr (sizeof(T) == sizeof(double)) {
    store_first(p, v, n);
  } else {
    const detail::half_vector half = detail::from_doubles(v);
    if (n == lanes<double>)
      std::memcpy(p, &half, sizeof half);
    else
      std::memcpy(p, &half, sizeof(T) * static_cast<std::size_t>(n));
  }
}

}  // namespace strata::simd
