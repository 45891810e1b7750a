// The arithmetic of a factored_rule on the CPU: second moments of rows and columns, and the directions divided by them.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <strata/concepts/optimizer.hpp>
#include <strata/cpu/simd/simd.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <strata/optimizers/gradient.hpp>
#include <strata/optimizers/gradient_modifiers.hpp>

namespace strata::detail {

/// The first n elements; the others are zero.
template <class T>
STRATA_INLINE inline simd::vec<T> load_some(const T* p, long n) {
  return n >= simd::lanes<T> ? simd::load(p) : simd::load_first(p, int(n));
}
template <class T>
STRATA_INLINE inline void store_some(T* p, simd::vec<T> v, long n) {
  n >= simd::lanes<T> ? simd::store(p, v) : simd::store_first(p, v, int(n));
}

/// 16 partial sums, then the sum of these: the same bits for any width of vectors.
template <class T, class Rule>
T mean_square_of_row(const Rule& rule, const T* g, sample_mean<T> applied, long columns) {
  constexpr int width = simd::lanes<T>, vectors = int(slice_alignment) / width;
  simd::vec<T> sums[vectors] = {};
  long j = 0;
  for (; j + slice_alignment <= columns; j += slice_alignment) {
    STRATA_UNROLL
    for (int k = 0; k < vectors; ++k) sums[k] += rule.square(applied.of(simd::vec<T>(simd::load(g + j + k * width))));
  }
  T partial[slice_alignment];
  std::memcpy(partial, sums, sizeof partial);
  for (int l = 0; j < columns; ++j, ++l) partial[l] += rule.square(applied.of(T(g[j])));
  double sum = 0;
  for (const T each : partial) sum += double(each);
  return T(sum / double(columns));
}

/// The means for columns [j, j + n) of a matrix, n at most a vector. Blocks of rows limit the rounding errors of long columns.
template <class T, class Rule>
simd::vec<T> mean_squares_of_columns(const Rule& rule, const T* g, sample_mean<T> applied, long rows, long columns, long n) {
  constexpr long block = 64;
  simd::vec<T> sum{};
  for (long begin = 0; begin < rows; begin += block) {
    simd::vec<T> of_block{};
    for (long k = begin; k < std::min(begin + block, rows); ++k)
      of_block += rule.square(applied.of(load_some(g + k * columns, n)));
    sum += of_block;
  }
  return sum / T(rows);
}

/// The moments of one parameter, from its whole gradient. The pointers are to its first elements.
template <class T, class Rule>
void update_moments(const Rule& rule, T* moments, const T* g, sample_mean<T> applied, const parameter_range& p) {
  using V = simd::vec<T>;
  if (!p.is_matrices()) {
    for (long i = 0; i < p.elements; i += simd::lanes<T>) {
      V moment = load_some(moments + i, p.elements - i);
      rule.follow(moment, V(rule.square(applied.of(load_some(g + i, p.elements - i)))));
      store_some(moments + i, moment, p.elements - i);
    }
    return;
  }
  const long size = p.rows * p.columns, matrices = p.elements / size;
  T *of_row = moments, *of_columns = moments + matrices * p.rows;
  for (long m = 0; m < matrices; ++m, g += size, of_columns += p.columns) {
    for (long k = 0; k < p.rows; ++k, ++of_row)
      rule.follow(*of_row, mean_square_of_row(rule, g + k * p.columns, applied, p.columns));
    for (long j = 0; j < p.columns; j += simd::lanes<T>) {
      const long n = p.columns - j;
      V moment = load_some(of_columns + j, n);
      rule.follow(moment, V(mean_squares_of_columns(rule, g + j, applied, p.rows, p.columns, n)));
      store_some(of_columns + j, moment, n);
    }
  }
}

/// The directions of elements [begin, end) of one parameter, computed in ascending order.
template <class T, class Rule>
class directions_from_moments {
  const Rule& rule_;
  const parameter_range& p_;
  const T* moments_;
  long matrix_ = -1;
  double mean_of_rows_ = 1;

 public:
  /// moments: of the whole parameter.
  directions_from_moments(const Rule& rule, const parameter_range& p, const T* moments) : rule_(rule), p_(p), moments_(moments) {}

  /// Calls f(i, n, propose) for vectors of n elements from element i on, where propose(gradient) returns their directions.
  template <class F>
  void operator()(long begin, long end, F&& f) {
    using V = simd::vec<T>;
    if (!p_.is_matrices()) {
      for (long i = begin; i < end; i += simd::lanes<T>)
        f(i, end - i, [&](reduced_gradient<V> g) { return rule_.propose(g, V(load_some(moments_ + i, end - i))); });
      return;
    }
    const long size = p_.rows * p_.columns, all_rows = p_.elements / p_.columns;
    while (begin < end) {
      const long matrix = begin / size, row = begin / p_.columns, column = begin % p_.columns;
      const T* const of_columns = moments_ + all_rows + matrix * p_.columns + column;
      const double of_row = double(moments_[row]), mean = mean_of_rows(matrix);
      const T factor = T(of_row / mean), inverse_root = T(std::sqrt(mean) / std::sqrt(of_row));
      const long count = std::min(p_.columns - column, end - begin);
      for (long j = 0; j < count; j += simd::lanes<T>)
        f(begin + j, count - j, [&](reduced_gradient<V> g) {
          return propose_from_factors(rule_, g, V(load_some(of_columns + j, count - j)), factor, inverse_root);
        });
      begin += count;
    }
  }

 private:
  double mean_of_rows(long matrix) {
    if (matrix != matrix_) {
      double sum = 0;
      for (long k = 0; k < p_.rows; ++k) sum += double(moments_[matrix * p_.rows + k]);
      mean_of_rows_ = sum / double(p_.rows);
      matrix_ = matrix;
    }
    return mean_of_rows_;
  }
};

}  // namespace strata::detail
