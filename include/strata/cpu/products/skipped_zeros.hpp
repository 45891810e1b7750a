// Products of a dense layer that skip zeros of its input: images with a border, one-hot vectors, word counts, results of relu.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <strata/cpu/products/packed_product.hpp>

namespace strata::simd {

/// An activation that removes the sign of zero sums. Adding 0 * w to a sum changes only -0, which becomes 0; a product may have
/// underflowed to -0. After this epilogue the result does not depend on which zeros were skipped.
template <class Activation>
struct of_unsigned_zeros {};

template <class Activation>
struct vector_activation<of_unsigned_zeros<Activation>> {
  template <class T>
  STRATA_INLINE static vec<T> value(vec<T> x) {
    return vector_activation<Activation>::template value<T>(x + vec<T>{});
  }
};

namespace detail {

/// Bit i is set if x[i] is not zero, for i < count <= lanes. nan is not zero, -0 is.
template <class T>
STRATA_INLINE inline std::uint64_t nonzeros_of_vector(const T* x, int count) {
  const vec<T> v = count == lanes<T> ? load(x) : load_first(x, count);
#if defined(STRATA_AVX512)
  if constexpr (sizeof(T) == 4)
    return _mm512_cmp_ps_mask((__m512)v, (__m512)vec<T>{}, _CMP_NEQ_UQ);
  else
    return _mm512_cmp_pd_mask((__m512d)v, (__m512d)vec<T>{}, _CMP_NEQ_UQ);
#elif defined(__AVX__)
  if constexpr (sizeof(T) == 4)
    return std::uint64_t(_mm256_movemask_ps((__m256)(v != vec<T>{})));
  else
    return std::uint64_t(_mm256_movemask_pd((__m256d)(v != vec<T>{})));
#else
  std::uint64_t bits = 0;
  for (int i = 0; i < lanes<T>; ++i) bits |= std::uint64_t(v[i] != T(0)) << i;
  return bits;
#endif
}

}  // namespace detail

/// Bit i is set if x[i] is not zero, for i < min(count, 64).
template <class T>
STRATA_INLINE inline std::uint64_t nonzeros(const T* x, int count) {
  constexpr int L = lanes<T>;
  std::uint64_t bits = 0;
  if (count >= 64) {
    STRATA_UNROLL
    for (int i = 0; i < 64 / L; ++i) bits |= detail::nonzeros_of_vector(x + i * L, L) << (i * L);
  } else
    for (int i = 0; i < count; i += L) bits |= detail::nonzeros_of_vector(x + i, std::min(count - i, L)) << i;
  return bits;
}

/// True if enough of x[0 ... size) is zero for a product with `columns` columns to gain by skipping. Samples so few elements that
/// it takes less than 1 % of such a product, and the same elements for any width of vectors.
template <class T>
bool many_zeros(const T* x, std::ptrdiff_t size, int columns) {
  constexpr int together = 16;
  // The distance is an odd number of pieces: otherwise, mostly the same columns of each row would be sampled.
  const std::ptrdiff_t step = std::max(std::ptrdiff_t(600 / columns), size / together / 64) | 1;
  int seen = 0, nonzero = 0;
  for (std::ptrdiff_t i = 0; i + together <= size; i += step * together)
    nonzero += std::popcount(nonzeros(x + i, together)), seen += together;
  return nonzero * 100 < seen * (columns < 64 ? 25 : columns < 128 ? 40 : 55);
}

namespace detail {

/// True if rows are so far apart that they share few sets of the first-level cache.
template <class T>
constexpr bool spread_over_few_sets(std::ptrdiff_t stride) {
  return stride * int(sizeof(T)) >= 1024;
}

/// Vectors of sums for one row, or for each of two rows where a row is short.
inline constexpr int skipping_vectors = 8;
constexpr int skipping_rows(int vectors) { return vectors > skipping_vectors / 2 ? 1 : 2; }

/// C (op)= A B for at most 64 rows of B, which are in the first-level cache. R rows of A at a time go through those rows of B for
/// which at least one of them is not zero.
template <class T, int R, int V, int Last, class Activation>
[[gnu::noinline]] void skipping_panel(const product<T>& p) {
  constexpr int L = lanes<T>;
  for (int first = 0; first < p.rows; first += R) {
    const T *a[R], *start[R];
    T* c[R];
    std::uint64_t left = 0;
    STRATA_UNROLL
    for (int r = 0; r < R; ++r) {
      const int row = first + r < p.rows ? first + r : p.rows - 1;
      a[r] = p.a + row * p.a_rows.inner, c[r] = p.c + row * p.c_rows.inner;
      start[r] = p.add ? c[r] : p.bias ? p.bias : zeros<T>;
      left |= nonzeros(a[r], p.length);
    }
    vec<T> sum[R][V];
    STRATA_UNROLL
    for (int i = 0; i < R * V; ++i) sum[i / V][i % V] = load_end<Last>(i % V + 1 == V, start[i / V] + i % V * L);
    for (; left != 0; left &= left - 1) {
      const int k = std::countr_zero(left);
      const T* const b = p.b + k * p.b_stride;
      vec<T> x[R];
      STRATA_UNROLL
      for (int r = 0; r < R; ++r) {
        x[r] = broadcast(a[r][k]);
        keep(x[r]);
      }
      STRATA_UNROLL
      for (int v = 0; v < V; ++v) {
        vec<T> w = load_end<Last>(v + 1 == V, b + v * L);
        if constexpr (R > 1) keep(w);
        STRATA_UNROLL
        for (int r = 0; r < R; ++r) sum[r][v] = multiply_add(x[r], w, sum[r][v]);
      }
    }
    STRATA_UNROLL
    for (int i = 0; i < R * V; ++i) {
      const vec<T> y = vector_activation<Activation>::template value<T>(sum[i / V][i % V]);
      store_end<Last>(i % V + 1 == V, c[i / V] + i % V * L, y);
    }
  }
}

/// The whole reduction for one column panel of C. Rows of B that lie far apart, and so share few sets of the cache, are copied.
template <class T, int V, int Last, class Activation>
void skipping_columns(const product<T>& p, int column, T* packed) {
  constexpr int width = V * lanes<T>;
  const bool copies = p.rows >= 16 && spread_over_few_sets<T>(p.b_stride);
  for (int k = 0; k < p.length; k += 64) {
    product<T> part = p;
    part.a += k, part.length = std::min(64, p.length - k);
    part.b += k * p.b_stride + column, part.c += column;
    part.bias = p.bias ? p.bias + column : nullptr, part.add = k > 0;
    if (copies) {
      pack<T, V>(part.b, p.b_stride, packed, part.length, width - lanes<T> + Last);
      part.b = packed, part.b_stride = width;
    }
    const bool ends = k + 64 >= p.length;
    if (p.rows == 1)
      ends ? skipping_panel<T, 1, V, Last, Activation>(part) : skipping_panel<T, 1, V, Last, linear>(part);
    else
      ends ? skipping_panel<T, skipping_rows(V), V, Last, Activation>(part)
           : skipping_panel<T, skipping_rows(V), V, Last, linear>(part);
  }
}

}  // namespace detail

/// Elements of scratch that multiply_skipping needs.
template <class T>
inline constexpr int skipping_scratch = 64 * detail::skipping_vectors * lanes<T>;

/// `multiply` for one run and a step of 1, which overwrites C. B must be finite, because 0 * inf may count as 0.
template <int N, class Activation, class T>
void multiply_skipping(const product<T>& p, T* packed) {
  using cut = panels<T, N, detail::skipping_vectors>;
  constexpr int L = lanes<T>, each = cut::each, rest = cut::rest;
  for (int i = 0; i + 1 < cut::count; ++i) detail::skipping_columns<T, each, L, Activation>(p, i * each * L, packed);
  detail::skipping_columns<T, rest, cut::last_lanes, Activation>(p, (cut::count - 1) * each * L, packed);
}

namespace detail {

/// For up to 64 columns: a bit mask of the (up to 64) samples that are not zero in each column.
template <class T>
struct samples_with_numbers {
  alignas(64) typename vector_of<T>::integer_element halves[2][64];

  std::uint64_t at(int k) const { return std::uint32_t(halves[0][k]) | std::uint64_t(std::uint32_t(halves[1][k])) << 32; }

  [[gnu::noinline]] void look_at(const T* x, std::ptrdiff_t stride, int samples, int places) {
    constexpr int L = lanes<T>;
    for (int k = 0; k < places; k += L)
      for (int half = 0; half < 2; ++half) {
        const int n = std::min(L, places - k), begin = 32 * half, end = std::min(samples, begin + 32);
        integers<T> bits{};
        for (int s = begin; s < end; ++s) {
          const T* const at = x + s * stride + k;
          const vec<T> v = n == L ? load(at) : load_first(at, n);
          bits |= (v != vec<T>{}) & broadcast_integer<T>(int(1u << (s - begin)));
        }
        std::memcpy(halves[half] + k, &bits, sizeof bits);
      }
  }
};

/// Two rows of dW at a time, for one column panel. d: the panel of dz.
template <class T, int V, int Last>
[[gnu::noinline]] void skipping_gradient_panel(const samples_with_numbers<T>& used, const T* x, std::ptrdiff_t x_stride,
                                               const T* d, std::ptrdiff_t d_stride, T* dw, std::ptrdiff_t columns, int rows,
                                               bool add) {
  constexpr int L = lanes<T>, R = 2;
  for (int k = 0; k < rows; k += R) {
    const int next = std::min(k + 1, rows - 1);
    const T* const a[R] = {x + k, x + next};
    T* const c[R] = {dw + k * columns, dw + next * columns};
    std::uint64_t left = used.at(k) | used.at(next);
    vec<T> sum[R][V] = {};
    if (add) {
      STRATA_UNROLL
      for (int i = 0; i < R * V; ++i) sum[i / V][i % V] = load_end<Last>(i % V + 1 == V, c[i / V] + i % V * L);
    }
    for (; left != 0; left &= left - 1) {
      const int s = std::countr_zero(left);
      const T* const row = d + s * d_stride;
      vec<T> b[R];
      STRATA_UNROLL
      for (int r = 0; r < R; ++r) {
        b[r] = broadcast(a[r][s * x_stride]);
        keep(b[r]);
      }
      STRATA_UNROLL
      for (int v = 0; v < V; ++v) {
        vec<T> w = load_end<Last>(v + 1 == V, row + v * L);
        keep(w);
        STRATA_UNROLL
        for (int r = 0; r < R; ++r) sum[r][v] = multiply_add(b[r], w, sum[r][v]);
      }
    }
    STRATA_UNROLL
    for (int i = 0; i < R * V; ++i) {
      store_end<Last>(i % V + 1 == V, c[i / V] + i % V * L, sum[i / V][i % V] + vec<T>{});
    }
  }
}

}  // namespace detail

/// Elements of scratch that weight_gradient_skipping needs: 64 rows of dz.
template <class T, int N>
inline constexpr int skipping_gradient_scratch = detail::spread_over_few_sets<T>(N) ? 64 * padded<T>(N) : 0;

/// dw (+)= x^T dz for `rows` columns of x and N columns of dz. Skips samples whose x is zero. dz must be finite.
template <int N, class T>
void weight_gradient_skipping(const T* x, std::ptrdiff_t x_stride, int rows, const T* dz, int count, T* dw, bool add, T* packed) {
  using cut = panels<T, N, registers / 4>;
  constexpr int L = lanes<T>, width = cut::each * L, most = 64;
  constexpr bool copies = detail::spread_over_few_sets<T>(N);
  detail::samples_with_numbers<T> used;
  for (int first = 0; first < count; first += most, x += most * x_stride, dz += most * std::ptrdiff_t(N)) {
    const int samples = std::min(most, count - first);
    const auto for_panels = [&](auto f) STRATA_INLINE {
      for (int i = 0; i + 1 < cut::count; ++i)
        f(i * width, std::integral_constant<int, cut::each>{}, std::integral_constant<int, L>{});
      f((cut::count - 1) * width, std::integral_constant<int, cut::rest>{}, std::integral_constant<int, cut::last_lanes>{});
    };
    if constexpr (copies)
      for_panels([&](int column, auto vectors, auto last) STRATA_INLINE {
        detail::pack<T, vectors>(dz + column, N, packed + most * column, samples, (vectors - 1) * L + last);
      });
    for (int k = 0; k < rows; k += 64) {
      const int places = std::min(64, rows - k);
      used.look_at(x + k, x_stride, samples, places);
      for_panels([&](int column, auto vectors, auto last) STRATA_INLINE {
        T* const to = dw + k * std::ptrdiff_t(N) + column;
        const T* const d = copies ? packed + most * column : dz + column;
        detail::skipping_gradient_panel<T, vectors, last>(used, x + k, x_stride, d, copies ? vectors * L : N, to, N, places,
                                                          add || first > 0);
      });
    }
  }
}

}  // namespace strata::simd
