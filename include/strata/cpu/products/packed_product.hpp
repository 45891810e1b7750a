// Matrix products that copy B into the first-level cache piece by piece: for a B larger than the second-level cache, for rows
// that lie a power of two apart, and for a transposed B.
#pragma once
#include <algorithm>
#include <strata/cpu/products/gemm.hpp>

namespace strata::simd {

/// How B is stored: as it is, or with rows and columns exchanged.
enum class storage { plain, transposed };

/// Elements of a piece of B: half of a first-level cache.
template <class T>
inline constexpr int packed_numbers = 24 * 1024 / int(sizeof(T));

namespace detail {

/// to[r][j] = from[r][j] for j < columns, then zeros; rows of `to` have V vectors. Prefetches the next columns.
template <class T, int V>
[[gnu::noinline]] void pack(const T* from, std::ptrdiff_t stride, T* to, int rows, int columns) {
  constexpr int L = lanes<T>, width = V * L;
  if (columns == width)
    for (const T* const end = from + rows * stride; from != end; from += stride, to += width) {
      STRATA_UNROLL
      for (int v = 0; v < V; ++v) {
        store(to + v * L, load(from + v * L));
        __builtin_prefetch(from + width + v * L, 0, 2);
      }
    }
  else
    for (int r = 0; r < rows; ++r, from += stride, to += width) {
      STRATA_UNROLL
      for (int v = 0; v < V - 1; ++v) store(to + v * L, load(from + v * L));
      store(to + (V - 1) * L, load_first(from + (V - 1) * L, columns - (V - 1) * L));
    }
}

/// One panel of C, V vectors wide, of which `columns` columns exist.
template <int Rows, int V, int Last, class Activation, class T>
void packed_panel(const product<T>& p, storage how, int column, int first, int length, T* packed) {
  constexpr int width = V * lanes<T>, columns = (V - 1) * lanes<T> + Last;
  if (how == storage::plain)
    pack<T, V>(p.b + first * p.b_stride + column, p.b_stride, packed, length, columns);
  else
    transpose(p.b + column * p.b_stride + first, p.b_stride, packed, width, columns, length, true);
  product<T> part = p;
  part.a += first * p.step, part.length = length;
  part.b = packed, part.b_stride = width;
  part.c += column;
  part.bias = p.bias ? p.bias + column : nullptr;
  part.add = p.add || first > 0;
  if (first + length == p.length)
    panel<T, block_of(Rows, V).rows, V, Last, Activation>(part, 0);
  else
    panel<T, block_of(Rows, V).rows, V, Last, linear>(part, 0);
}

}  // namespace detail

/// `multiply` for one run, with B packed. packed: packed_numbers<T> elements of scratch.
template <int N, int Rows, class Activation = linear, int Most = most_vectors, class T>
void multiply_packed(const product<T>& p, storage how, T* packed) {
  using cut = panels<T, N, Most>;
  constexpr int L = lanes<T>, each = cut::each, rest = cut::rest, most = packed_numbers<T> / (each * L);
  const int pieces = (p.length + most - 1) / most, length = (p.length + pieces - 1) / pieces;
  const auto piece = [&](int i, int first) STRATA_INLINE {
    const int n = std::min(length, p.length - first);
    if (i + 1 < cut::count)
      detail::packed_panel<Rows, each, L, Activation>(p, how, i * each * L, first, n, packed);
    else
      detail::packed_panel<Rows, rest, cut::last_lanes, Activation>(p, how, i * each * L, first, n, packed);
  };
  // The larger one of B and C is passed over only once.
  if (p.rows < p.length)
    for (int first = 0; first < p.length; first += length)
      for (int i = 0; i < cut::count; ++i) piece(i, first);
  else
    for (int i = 0; i < cut::count; ++i)
      for (int first = 0; first < p.length; first += length) piece(i, first);
}

}  // namespace strata::simd
