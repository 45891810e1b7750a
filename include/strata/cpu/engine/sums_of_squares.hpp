// Sums over elements of an arena in a fixed order, with the same bits for any width of vectors: norms and penalties.
#pragma once
#include <algorithm>
#include <cstring>
#include <strata/cpu/engine/elementwise_of_vectors.hpp>
#include <strata/cpu/simd/doubles.hpp>
#include <strata/network/parameter_ranges.hpp>

namespace strata {

namespace detail {
/// The sum of f(element) in double over [begin, end), always in the same order: 16 partial sums, then the sum of these. f takes a
/// vector of doubles, and f(0) must be 0.
template <class T, class F>
double sum_over(const T* values, long begin, long end, F f) {
  constexpr int width = simd::lanes<double>, vectors = int(slice_alignment) / width;
  simd::vec<double> sums[vectors] = {};
  long i = begin;
  for (; i + slice_alignment <= end; i += slice_alignment) {
    STRATA_UNROLL
    for (int k = 0; k < vectors; ++k) sums[k] += f(simd::load_as_doubles(values + i + k * width, width));
  }
  STRATA_UNROLL
  for (int k = 0; k < vectors; ++k) {
    if (const long at = i + k * width; at < end)
      sums[k] += f(simd::load_as_doubles(values + at, int(std::min<long>(width, end - at))));
  }
  double sum[slice_alignment];
  std::memcpy(sum, sums, sizeof sum);
  for (long distance = 1; distance < slice_alignment; distance *= 2)
    for (long l = 0; l < slice_alignment; l += 2 * distance) sum[l] += sum[l + distance];
  return sum[0];
}
template <class T>
double sum_of_squares(const T* values, long begin, long end) {
  return sum_over(values, begin, end, [](simd::vec<double> x) { return product(x, x); });
}
}  // namespace detail

}  // namespace strata
