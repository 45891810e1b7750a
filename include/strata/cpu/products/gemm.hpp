// Batch-reduce matrix products in register blocks. Sizes and strides are values and only the block is a type, so all layers of a
// program share a few compiled loops.
#pragma once
#include <algorithm>
#include <climits>
#include <strata/cpu/simd/vector_activations.hpp>

namespace strata::simd {

/// The positions of rows: row r lies at (r / wrap) * outer + (r % wrap) * inner. A matrix has one stride, the pixels of an image
/// have two.
struct row_grid {
  std::ptrdiff_t inner = 0;
  int wrap = INT_MAX;
  std::ptrdiff_t outer = 0;
};

/// The only run of a product of matrices.
inline constexpr int one_run[1] = {0};

/// C (op)= A B with C: (rows, N). Grid: how the rows of A and C lie. The reduction goes through `runs` runs of `length` elements,
/// in order:
///   C[r][j] = bias[j], 0 or C[r][j], plus the sum of A[r][run_at[i] + k * step] * B[i * length + k][j], then an activation.
template <class T, class Grid = row_grid>
struct product {
  int rows;
  const T* a;
  Grid a_rows;
  const int* run_at = one_run;
  int runs = 1, length = 0;
  std::ptrdiff_t step = 1;
  const T* b;
  std::ptrdiff_t b_stride;
  T* c;
  Grid c_rows;
  const T* bias = nullptr;
  bool add = false;
};

/// A register block: rows * vectors sums, one row of B and one broadcast element must fit into the register file.
struct block {
  int rows, vectors;
};
inline constexpr int most_vectors = registers == 32 ? 4 : 2;

/// The best block for `rows` rows, counting half a row of work per block. It has at most 8 rows, or `most_rows`, because their
/// addresses need registers, too, and at least 4, for enough independent sums. rows == 0: the number is not known at compile
/// time; mostly it is a power of two.
constexpr block block_of(int rows, int vectors, int most_rows = 8) {
  const int fitting = (registers - 1) / vectors - 1, most = std::min(most_rows, fitting);
  if (rows == 0) return {most >= 8 ? 8 : 4, vectors};
  int best = most, least = INT_MAX;
  for (int r = most; r >= 4; --r) {
    const int cost = (rows + r - 1) / r * (2 * r + 1);
    if (cost < least) least = cost, best = r;
  }
  return {best, vectors};
}

namespace detail {

/// The initial sums of a product without bias.
template <class T>
alignas(64) inline constexpr T zeros[registers / 2 * lanes<T>] = {};

/// Walks through a row_grid without divisions.
struct row_walk {
  row_grid grid;
  int column = 0;
  std::ptrdiff_t line = 0, at = 0;

  STRATA_INLINE std::ptrdiff_t next() {
    const std::ptrdiff_t here = at;
    if (++column == grid.wrap)
      column = 0, line += grid.outer, at = line;
    else
      at += grid.inner;
    return here;
  }
};

/// The addresses of the next R rows. After the last row, its address repeats: it is computed again with the same result.
template <int R, class T, class Walk>
STRATA_INLINE inline void next_rows(T* (&p)[R], T* base, Walk& walk, int left) {
  p[0] = base + walk.next();
  STRATA_UNROLL
  for (int r = 1; r < R; ++r) p[r] = r < left ? base + walk.next() : p[r - 1];
  STRATA_UNROLL
  for (int r = 0; r < R; ++r) {
    auto& row = p[r];
    asm("" : "+r"(row));
  }  // or g++ clones all that follows for repeated rows
}

/// next_rows for rows of one stride.
template <int R, class T>
STRATA_INLINE inline void next_rows(T* (&p)[R], T* base, std::ptrdiff_t stride, int left) {
  p[0] = base;
  STRATA_UNROLL
  for (int r = 1; r < R; ++r) p[r] = p[r - 1] + (stride & -std::ptrdiff_t(r < left));
  STRATA_UNROLL
  for (int r = 0; r < R; ++r) {
    auto& row = p[r];
    asm("" : "+r"(row));
  }
}

/// The innermost loop, which takes nearly all of the time: one run.
template <int R, int V, int Last, class T>
STRATA_INLINE inline void accumulate_run(vec<T> (&sum)[R][V], const T* const (&a)[R], std::ptrdiff_t begin, std::ptrdiff_t end,
                                         std::ptrdiff_t step, const T*& b, std::ptrdiff_t b_stride) {
  for (std::ptrdiff_t k = begin; k != end; k += step, b += b_stride) {
    vec<T> w[V];
    STRATA_UNROLL
    for (int v = 0; v < V; ++v) {
      w[v] = load_end<Last>(v + 1 == V, b + v * lanes<T>);
      if constexpr (R > 1) keep(w[v]);
    }
    STRATA_UNROLL
    for (int r = 0; r < R; ++r) {
      vec<T> x = broadcast(a[r][k]);
      if constexpr (V > 1) keep(x);
      STRATA_UNROLL
      for (int v = 0; v < V; ++v) sum[r][v] = multiply_add(x, w[v], sum[r][v]);
    }
  }
}
template <int R, int V, int Last, class T>
STRATA_INLINE inline void accumulate(vec<T> (&sum)[R][V], const T* const (&a)[R], const product<T>& p, const T* b) {
  const std::ptrdiff_t step = p.step, b_stride = p.b_stride, reach = p.length * step;
  for (int run = 0; run < p.runs; ++run)
    accumulate_run<R, V, Last>(sum, a, p.run_at[run], p.run_at[run] + reach, step, b, b_stride);
}

/// All rows of a column panel of V vectors, the last of which has Last lanes. For matrices only: their rows have one stride, and
/// the reduction is one run, which begins at 0. That makes a third of the code of rows in a grid.
template <class T, int R, int V, int Last, class Activation>
[[gnu::noinline]] void panel(const product<T>& p, int column) {
  constexpr int L = lanes<T>;
  const std::ptrdiff_t a_stride = p.a_rows.inner, c_stride = p.c_rows.inner;
  const T* a_base = p.a;
  T* c_base = p.c + column;
  const T* const bias = p.bias ? p.bias + column : zeros<T>;
  // Copies: stores of vectors might change p.
  const std::ptrdiff_t step = p.step, end = p.length * step, b_stride = p.b_stride;
  const T* const b_begin = p.b + column;
  const bool add = p.add;
  for (int left = p.rows; left > 0; left -= R, a_base += R * a_stride, c_base += R * c_stride) {
    const T* a[R];
    T* c[R];
    next_rows(a, a_base, a_stride, left);
    next_rows(c, c_base, c_stride, left);
    const T* start[R];
    STRATA_UNROLL
    for (int r = 0; r < R; ++r) start[r] = add ? c[r] : bias;
    vec<T> sum[R][V];
    STRATA_UNROLL
    for (int i = 0; i < R * V; ++i) sum[i / V][i % V] = load_end<Last>(i % V + 1 == V, start[i / V] + i % V * L);
    const T* b = b_begin;
    accumulate_run<R, V, Last>(sum, a, 0, end, step, b, b_stride);
    STRATA_UNROLL
    for (int i = 0; i < R * V; ++i)
      store_end<Last>(i % V + 1 == V, c[i / V] + i % V * L, vector_activation<Activation>::template value<T>(sum[i / V][i % V]));
  }
}

}  // namespace detail

/// Divides N columns into panels of equal width, with a limit on their vectors.
template <class T, int N, int Most = most_vectors>
struct panels {
  static constexpr int vectors = (N + lanes<T> - 1) / lanes<T>, count = (vectors + Most - 1) / Most;
  static constexpr int each = (vectors + count - 1) / count, rest = vectors - each * (count - 1);
  static constexpr int last_lanes = N - (vectors - 1) * lanes<T>;
};

namespace detail {
/// The product of a single row. Panels are wider, for enough independent sums, and B is read in longer pieces.
template <int N, class Activation, class T>
void one_row(const product<T>& p) {
  constexpr int L = lanes<T>, wide = registers / 2, half = wide / 2, quarter = wide / 4;
  constexpr int vectors = panels<T, N>::vectors, after_wide = (vectors - 1) % wide + 1;
  constexpr int after_half = after_wide > half ? after_wide - half : after_wide;
  constexpr int rest = after_half > quarter ? after_half - quarter : after_half;
  int column = 0;
  const auto next = [&](auto width) STRATA_INLINE {
    panel<T, 1, width, L, Activation>(p, column);
    column += width * L;
  };
  if constexpr (vectors > wide)
    while (column + wide * L < N) next(std::integral_constant<int, wide>{});
  if constexpr (after_wide > half) next(std::integral_constant<int, half>{});
  if constexpr (after_half > quarter) next(std::integral_constant<int, quarter>{});
  panel<T, 1, rest, panels<T, N>::last_lanes, Activation>(p, column);
}
}  // namespace detail

/// The product of matrices with N columns. Rows: their number, or 0 if it is known at run time only.
template <int N, int Rows, class Activation = linear, int Most = most_vectors, class T>
void multiply(const product<T>& p) {
  using cut = panels<T, N, Most>;
  constexpr int L = lanes<T>, each = cut::each, rest = cut::rest, width = each * L;
  if constexpr (Rows == 0)
    if (p.rows == 1) return detail::one_row<N, Activation>(p);
  for (int i = 0; i + 1 < cut::count; ++i) detail::panel<T, block_of(Rows, each).rows, each, L, Activation>(p, i * width);
  detail::panel<T, block_of(Rows, rest).rows, rest, cut::last_lanes, Activation>(p, (cut::count - 1) * width);
}

/// sums[j] (+)= the sum over rows of a[r][j], in order.
template <class T>
[[gnu::noinline]] void column_sums(const T* a, int rows, int columns, T* sums, bool add) {
  constexpr int L = lanes<T>, V = 4;
  int j = 0;
  for (; j + V * L <= columns; j += V * L) {
    vec<T> s[V];
    STRATA_UNROLL
    for (int v = 0; v < V; ++v) {
      s[v] = add ? load(sums + j + v * L) : vec<T>{};
    }
    for (int r = 0; r < rows; ++r) {
      STRATA_UNROLL
      for (int v = 0; v < V; ++v) s[v] += load(a + std::ptrdiff_t(r) * columns + j + v * L);
    }
    STRATA_UNROLL
    for (int v = 0; v < V; ++v) store(sums + j + v * L, s[v]);
  }
  for (; j < columns; j += L) {
    const int n = columns - j < L ? columns - j : L;
    vec<T> s = add ? load_first(sums + j, n) : vec<T>{};
    for (int r = 0; r < rows; ++r) s += load_first(a + std::ptrdiff_t(r) * columns + j, n);
    store_first(sums + j, s, n);
  }
}

}  // namespace strata::simd
