// Matrix products of bfloat16 pairs in register blocks, accumulated in float.
#pragma once
#include <strata/cpu/simd/bf16.hpp>
#include <strata/cpu/simd/vector_activations.hpp>

namespace strata::simd {

/// C (op)= A B with C: (rows, columns), over `length` pairs: C[r][j] = bias[j], 0 or C[r][j], plus the sum over k of the dot
/// products of A[r * a_row + k * a_step] and B[k * b_row + j]. Rows of B are whole vectors.
struct mixed_product {
  int rows, columns, length;
  const bf16_pair* a;
  std::ptrdiff_t a_row, a_step;
  const bf16_pair* b;
  std::ptrdiff_t b_row;
  float* c;
  std::ptrdiff_t c_row;
  const float* bias = nullptr;
  bool add = false;
};

namespace detail {
/// A panel of V vectors of columns, the last of which has n lanes.
template <class B, int R, int V, class Activation>
[[gnu::noinline]] void mixed_panel(const mixed_product& p, int column, int n) {
  constexpr int L = lanes<float>;
  const auto get = [&](const float* from, int v)
                       STRATA_INLINE { return v + 1 == V && n < L ? load_first(from + v * L, n) : load(from + v * L); };
  for (int row = 0; row < p.rows; row += R) {
    const bf16_pair* a[R];
    float* c[R];
    STRATA_UNROLL
    for (int r = 0; r < R; ++r) {
      const std::ptrdiff_t at = row + r < p.rows ? row + r : p.rows - 1;  // the last row repeats, with the same result
      a[r] = p.a + at * p.a_row, c[r] = p.c + at * p.c_row + column;
    }
    vec<float> sum[R][V];
    if (p.add) {
      STRATA_UNROLL
      for (int i = 0; i < R * V; ++i) sum[i / V][i % V] = get(c[i / V], i % V);
    } else {
      STRATA_UNROLL
      for (int i = 0; i < R * V; ++i) {
        sum[i / V][i % V] = p.bias ? get(p.bias + column, i % V) : vec<float>{};
      }
    }
    const bf16_pair* b = p.b + column;
    for (std::ptrdiff_t k = 0, end = p.length * p.a_step; k != end; k += p.a_step, b += p.b_row)
      accumulate_pairs<B>(sum, a, k, b);
    STRATA_UNROLL
    for (int i = 0; i < R * V; ++i) {
      const int v = i % V;
      const vec<float> y = vector_activation<Activation>::template value<float>(sum[i / V][v]);
      if (v + 1 == V && n < L)
        store_first(c[i / V] + v * L, y, n);
      else
        store(c[i / V] + v * L, y);
    }
  }
}
template <class B, int R, class Activation>
void mixed_panels(const mixed_product& p) {
  constexpr int L = lanes<float>;
  int column = 0;
  for (; p.columns - column > L; column += 2 * L)
    mixed_panel<B, R, 2, Activation>(p, column, std::min(L, p.columns - column - L));
  if (column < p.columns) mixed_panel<B, R, 1, Activation>(p, column, p.columns - column);
}
}  // namespace detail

template <class B, class Activation = linear>
void multiply_pairs(const mixed_product& p) {
  if (p.rows == 1)
    detail::mixed_panels<B, 1, Activation>(p);
  else
    detail::mixed_panels<B, registers == 32 ? 8 : 4, Activation>(p);
}

/// Rounds a matrix to rows of pairs of neighbours, `to_row` pairs apart.
template <class B>
void round_rows(const float* from, int rows, int columns, bf16_pair* to, std::ptrdiff_t to_row) {
  for (int r = 0; r < rows; ++r, from += columns, to += to_row) round_row<B>(from, columns, to);
}

/// Rounds rows 2 k and 2 k + 1 of a matrix to row k of pairs, in whole vectors. With `Sequential` the earlier row is the second
/// of a pair, which is added first: then a sum over rows does not depend on which rows form a pair.
template <class B, bool Sequential = false>
[[gnu::noinline]] void pair_rows(const float* from, int rows, int columns, bf16_pair* to, std::ptrdiff_t to_row) {
  constexpr int L = lanes<float>;
  for (int r = 0; r < rows; r += 2, from += 2 * columns, to += to_row)
    for (int j = 0; j < columns; j += L) {
      const int n = columns - j < L ? columns - j : L;
      const bool both = r + 1 < rows;
      const vec<float> early = n == L ? load(from + j) : load_first(from + j, n), late = !both ? vec<float>{}
                                                                                         : n == L
                                                                                             ? load(from + columns + j)
                                                                                             : load_first(from + columns + j, n);
      store_pairs(to + j, Sequential ? make_pairs<B>(late, early) : make_pairs<B>(early, late));
    }
}

/// Rounds columns 2 k and 2 k + 1 of a matrix to row k of pairs, in whole vectors.
template <class B>
[[gnu::noinline]] void pair_columns(const float* from, int rows, int columns, bf16_pair* to, std::ptrdiff_t to_row) {
  constexpr int L = lanes<float>;
  for (int i = 0; i < rows; i += L)
    for (int j = 0; j < columns; j += 2 * L) {
      const float* const corner = from + std::ptrdiff_t(i) * columns + j;
      const int height = std::min(L, rows - i), low = std::min(L, columns - j), high = std::min(L, columns - j - low);
      vec<float> r[L];
      if (height == L && high == L) {
        STRATA_UNROLL
        for (int k = 0; k < L; ++k) {
          const float* const row = corner + k * std::ptrdiff_t(columns);
          r[k] = (vec<float>)B::row(load(row), load(row + L));
        }
      } else {
        STRATA_UNROLL
        for (int k = 0; k < L; ++k) {
          const float* const row = corner + k * std::ptrdiff_t(columns);
          r[k] = k < height ? (vec<float>)B::row(load_first(row, low), high > 0 ? load_first(row + L, high) : vec<float>{})
                            : vec<float>{};
        }
      }
      transpose<float>(r);
      const int pairs = (low + high + 1) / 2;
      bf16_pair* const corner_to = to + j / 2 * to_row + i;
      STRATA_UNROLL
      for (int k = 0; k < L; ++k)
        if (k < pairs) store_pairs(corner_to + k * to_row, (bf16_pairs)r[k]);
    }
}

}  // namespace strata::simd
