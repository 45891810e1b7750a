// Matrix products whose rows are the pixels of several images, for convolutions. Sizes and strides are values and only the
// register block is a type, so all layers of a program share a few compiled loops.
#pragma once
#include <strata/cpu/products/gemm.hpp>
#include <strata/cpu/simd/simd.hpp>

namespace strata::simd {

/// The positions of rows: `columns` side by side in a line, `lines` lines in an image, and images.
struct image_grid {
  std::ptrdiff_t column_step = 0;
  int columns = INT_MAX;
  std::ptrdiff_t line_step = 0;
  int lines = INT_MAX;
  std::ptrdiff_t image_step = 0;
};

/// Calls f(i, address) for the places of a grid in row order, `right` apart between columns and `down` between rows. The address
/// of a row is hidden from the compiler, which would otherwise keep, and spill, one pointer per place.
template <int Rows = 4, int Columns = 4, class T, class F>
STRATA_INLINE inline void in_grid(T* corner, std::ptrdiff_t right, std::ptrdiff_t down, F&& f) {
  STRATA_UNROLL
  for (int i = 0; i < Rows; ++i) {
    T* row = corner;
    asm("" : "+r"(row));
    STRATA_UNROLL
    for (int j = 0; j < Columns; ++j) f(i * Columns + j, row + j * right);
    corner = row + down;
  }
}

/// A product whose rows are the pixels of images.
template <class T>
using image_product = product<T, image_grid>;

namespace detail {

/// Walks through an image_grid without divisions.
struct image_walk {
  image_grid grid;
  int column = 0, line = 0;
  std::ptrdiff_t line_at = 0, image_at = 0, at = 0;

  STRATA_INLINE std::ptrdiff_t next() {
    const std::ptrdiff_t here = at;
    at += grid.column_step;
    if (++column == grid.columns) {
      column = 0, line_at += grid.line_step;
      if (++line == grid.lines) line = 0, image_at += grid.image_step, line_at = image_at;
      at = line_at;
    }
    return here;
  }
};

/// Loads a vector of a row. The last vector of a panel has `n` lanes if it is not whole.
template <bool Whole, class T>
STRATA_INLINE inline vec<T> load_lanes(const T* p, [[maybe_unused]] int n) {
  if constexpr (Whole)
    return load(p);
  else
    return load_first(p, n);
}
/// The same for the vectors of a row, of which the last one has n lanes.
template <bool Whole, class T>
STRATA_INLINE inline vec<T> load_last_lanes(bool last, const T* p, [[maybe_unused]] int n) {
  if constexpr (Whole) return load(p);
  return last ? load_first(p, n) : load(p);
}
template <bool Whole, class T>
STRATA_INLINE inline void store_lanes(T* p, std::type_identity_t<vec<T>> v, [[maybe_unused]] int n) {
  if constexpr (Whole)
    store(p, v);
  else
    store_first(p, v, n);
}

/// sum[r][v] += A[r][at] * B[v], for one row of B.
template <int R, int V, bool Whole, class T>
STRATA_INLINE inline void accumulate_row(vec<T> (&sum)[R][V], const T* const (&a)[R], std::ptrdiff_t at, const T* b, int last) {
  vec<T> w[V];
  STRATA_UNROLL
  for (int v = 0; v < V; ++v) {
    w[v] = load_last_lanes<Whole>(v + 1 == V, b + v * lanes<T>, last);
    keep(w[v]);
  }
  // In a loop, g++ 12 addresses the rows by an index instead of pointers, which is up to 4 % slower for short runs.
  unroll<R>([&](auto r) STRATA_INLINE {
    vec<T> x = broadcast(a[r][at]);
    if constexpr (V > 1) keep(x);
    STRATA_UNROLL
    for (int v = 0; v < V; ++v) sum[r][v] = multiply_add(x, w[v], sum[r][v]);
  });
}

/// The innermost loop, which takes nearly all of the time.
template <int R, int V, bool Whole, class T>
STRATA_INLINE inline void accumulate_runs(vec<T> (&sum)[R][V], const T* const (&a)[R], const image_product<T>& p, const T* b,
                                          int last) {
  const std::ptrdiff_t step = p.step, b_stride = p.b_stride, reach = p.length * step;
  for (int run = 0; run < p.runs; ++run) {
    const std::ptrdiff_t begin = p.run_at[run], end = begin + reach;
    for (std::ptrdiff_t k = begin; k != end; k += step, b += b_stride) accumulate_row<R, V, Whole>(sum, a, k, b, last);
  }
}

/// All rows of a column panel of V vectors, the last of which has `last` lanes.
template <class T, int R, int V, bool Whole, class Activation>
[[gnu::noinline]] void image_panel(const image_product<T>& p, int column, int last) {
  constexpr int L = lanes<T>;
  image_walk a_walk{p.a_rows}, c_walk{p.c_rows};
  T* const c_base = p.c + column;
  const T* const bias = p.bias ? p.bias + column : zeros<T>;
  for (int left = p.rows; left > 0; left -= R) {
    const T* a[R];
    T* c[R];
    next_rows(a, p.a, a_walk, left);
    next_rows(c, c_base, c_walk, left);
    const T* start[R];
    STRATA_UNROLL
    for (int r = 0; r < R; ++r) start[r] = p.add ? c[r] : bias;
    vec<T> sum[R][V];
    STRATA_UNROLL
    for (int i = 0; i < R * V; ++i) sum[i / V][i % V] = load_last_lanes<Whole>(i % V + 1 == V, start[i / V] + i % V * L, last);
    accumulate_runs<R, V, Whole>(sum, a, p, p.b + column, last);
    STRATA_UNROLL
    for (int i = 0; i < R * V; ++i) {
      const vec<T> y = vector_activation<Activation>::template value<T>(sum[i / V][i % V]);
      if (Whole || i % V + 1 < V)
        store(c[i / V] + i % V * L, y);
      else
        store_first(c[i / V] + i % V * L, y, last);
    }
  }
}

/// The rows of a register block of V vectors: `most` fills the registers; `fewer` and `least` leave fewer rows over for some
/// numbers of rows.
struct block_rows {
  int most, fewer, least;
};
constexpr block_rows block_rows_of(int V) {
  constexpr block_rows of_32[] = {{12, 9, 8}, {8, 6, 6}, {8, 6, 6}, {6, 5, 5}}, of_16[] = {{10, 6, 6}, {6, 4, 4}};
  return registers == 32 ? of_32[V - 1] : of_16[V - 1];
}

template <class T, int V, bool Whole, class Activation>
void image_panel_of(const image_product<T>& p, int column, int last) {
  constexpr int most = block_rows_of(V).most, fewer = block_rows_of(V).fewer, least = block_rows_of(V).least;
  const auto cost = [&](int r) { return (p.rows + r - 1) / r * (2 * r + 1); };
  if (cost(most) <= cost(fewer) && cost(most) <= cost(least))
    image_panel<T, most, V, Whole, Activation>(p, column, last);
  else if (cost(fewer) <= cost(least))
    image_panel<T, fewer, V, Whole, Activation>(p, column, last);
  else
    image_panel<T, least, V, Whole, Activation>(p, column, last);
}

}  // namespace detail

/// The product with N columns, in panels of equal width.
template <int N, class Activation = linear, class T>
void multiply_images(const image_product<T>& p) {
  using cut = panels<T, N>;
  constexpr int L = lanes<T>, whole = (cut::count - 1) * cut::each * L;
  for (int column = 0; column < whole; column += cut::each * L)
    detail::image_panel_of<T, cut::each, true, Activation>(p, column, L);
  detail::image_panel_of<T, cut::rest, (cut::last_lanes == L), Activation>(p, whole, cut::last_lanes);
}

/// sums[j] (+)= the sum over the pixels of each image of a[pixel][j]: each image in four interleaved sums, the images in order.
template <class T>
[[gnu::noinline]] void pixel_sums(const T* a, int images, int pixels, int columns, T* sums, bool add) {
  constexpr int L = lanes<T>;
  for (int j = 0; j < columns; j += L) {
    const int n = columns - j < L ? columns - j : L;
    const auto get = [&](const T* p) STRATA_INLINE { return n == L ? load(p) : load_first(p, n); };
    vec<T> total = add ? get(sums + j) : vec<T>{};
    const T* p = a + j;
    for (int i = 0; i < images; ++i) {
      vec<T> s[4] = {};
      int r = 0;
      for (; r + 4 <= pixels; r += 4, p += 4 * std::ptrdiff_t(columns)) {
        STRATA_UNROLL
        for (int k = 0; k < 4; ++k) s[k] += get(p + k * std::ptrdiff_t(columns));
      }
      for (; r < pixels; ++r, p += columns) s[0] += get(p);
      total += (s[0] + s[1]) + (s[2] + s[3]);
    }
    store_first(sums + j, total, n);
  }
}

}  // namespace strata::simd
