// Saxe et al. 2014: a random orthogonal matrix.
#pragma once
#include <cmath>
#include <strata/base/decimal.hpp>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/initializer.hpp>
#include <strata/initializers/distributions.hpp>
#include <string>
#include <vector>

namespace strata {

namespace detail {
/// Replaces `count` vectors of `length` elements by the Q of their QR factorisation whose R has a positive diagonal. Repeated
/// Gram-Schmidt is as accurate as Householder's method, and its order of sums is fixed. vectors: (count, length)
inline void orthonormalize(std::span<double> vectors, std::size_t count, std::size_t length) {
  const auto dot = [&](const double* a, const double* b) {
    double sum = 0;
    for (std::size_t i = 0; i < length; ++i) sum += a[i] * b[i];
    return sum;
  };
  for (std::size_t k = 0; k < count; ++k) {
    double* const v = vectors.data() + k * length;
    for (int pass = 0; pass < 2; ++pass)
      for (std::size_t j = 0; j < k; ++j) {
        const double* const done = vectors.data() + j * length;
        const double projection = dot(v, done);
        for (std::size_t i = 0; i < length; ++i) v[i] -= projection * done[i];
      }
    const double norm = std::sqrt(dot(v, v));
    for (std::size_t i = 0; i < length; ++i) v[i] /= norm;
  }
}
}  // namespace detail

/// The parameter as a matrix (product of all extents but the last, last extent) has orthonormal columns, or orthonormal rows if
/// there are fewer rows than columns, times Gain.  https://keras.io/api/layers/initializers
/// Throws strata_error for a parameter with a single axis.
template <core::decimal Gain = core::decimal(1)>
struct orthogonal {
  static constexpr auto name = "orthogonal";
  static void fill(std::span<double> values, shape s, core::philox random) {
    if (s.rank() < 2) throw_error({"orthogonal needs a parameter with at least two axes; this one has ", s.rank()});
    const auto columns = std::size_t(s.last()), rows = values.size() / columns;
    const bool wide = rows < columns;
    const std::size_t count = wide ? rows : columns, length = wide ? columns : rows;
    std::vector<double> q(count * length);  // (count, length)
    detail::fill_normal(q, 0, 1, random);
    detail::orthonormalize(q, count, length);
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t column = 0; column < columns; ++column)
        values[row * columns + column] = Gain.value() * (wide ? q[row * length + column] : q[column * length + row]);
  }
};

}  // namespace strata
