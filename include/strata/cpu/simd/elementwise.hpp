// Loops over arrays in vectors. They call f(index, lanes), where `lanes` loads and stores a whole vector, or the part that is
// left at the end.
#pragma once
#include <strata/cpu/simd/vector_activations.hpp>

namespace strata::simd {

/// 0, 1, 2, ...
template <class T>
STRATA_INLINE inline integers<T> lane_numbers() {
  integers<T> v{};
  STRATA_UNROLL
  for (int i = 0; i < lanes<T>; ++i) v[int(i)] = int(i);
  return v;
}

/// All lanes of a vector.
template <class T>
struct whole_vector {
  static constexpr int count = lanes<T>;
  STRATA_INLINE static vec<T> load(const T* p) { return simd::load(p); }
  STRATA_INLINE static void store(T* p, vec<T> v) { simd::store(p, v); }
  /// v, but `otherwise` in lanes without an element: here none.
  STRATA_INLINE static vec<T> select(vec<T> v, vec<T>) { return v; }
};

/// The first `count` lanes. Loading sets the others to zero.
template <class T>
struct part_of_vector {
  int count;
  STRATA_INLINE vec<T> load(const T* p) const { return load_first(p, count); }
  STRATA_INLINE void store(T* p, vec<T> v) const { store_first(p, v, count); }
  STRATA_INLINE vec<T> select(vec<T> v, vec<T> otherwise) const {
    return lane_numbers<T>() < broadcast_integer<T>(count) ? v : otherwise;
  }
};

/// Calls f(index, lanes) for n elements.
template <class T, class F>
STRATA_INLINE inline void for_vectors(std::ptrdiff_t n, F&& f) {
  constexpr int L = lanes<T>;
  std::ptrdiff_t i = 0;
  for (; i + L <= n; i += L) f(i, whole_vector<T>{});
  if (i < n) f(i, part_of_vector<T>{int(n - i)});
}

/// The same, Unroll vectors at a time: for loops that do little work per vector.
template <class T, int Unroll, class F>
STRATA_INLINE inline void for_vectors_unrolled(std::ptrdiff_t n, F&& f) {
  constexpr int L = lanes<T>;
  std::ptrdiff_t i = 0;
  for (; i + Unroll * L <= n; i += Unroll * L) {
    STRATA_UNROLL
    for (int k = 0; k < Unroll; ++k) {
      f(i + k * L, whole_vector<T>{});
    }
  }
  for (; i + L <= n; i += L) f(i, whole_vector<T>{});
  if (i < n) f(i, part_of_vector<T>{int(n - i)});
}

/// The slope of an activation whose result is y.
template <class Activation, class T, class Lanes>
STRATA_INLINE inline vec<T> slope_at(const Lanes& at, const T* y) {
  if constexpr (std::is_same_v<Activation, linear>)
    return broadcast(T(1));  // y may be null
  else
    return vector_activation<Activation>::template derivative<T>(at.load(y));
}

/// Rounds v here. Compilers differ in what they fuse across statements, but every target must compute the same bits.
template <class T>
STRATA_INLINE inline vec<T> rounded(vec<T> v) {
  keep(v);
  return v;
}

/// Stores a gradient, or adds it to the one that is there.
template <class T, class Lanes>
STRATA_INLINE inline void put(const Lanes& at, T* to, vec<T> v, bool add) {
  keep(v);
  at.store(to, add ? at.load(to) + v : v);
}

/// The elements of one row of channels: pixels are the rows of a matrix. With few channels, several pixels form one row of a
/// multiple of C elements, so that vectors are full and sums are independent. The width decides the order of sums, so it is the
/// same for every target.
constexpr int row_width(int C) {
  int width = C;
  while (width < 64 || (C < 64 && width % 16 != 0)) width += C;
  return width;
}

/// Copies a matrix, or a part of one, that has `columns` columns.
template <class T>
[[gnu::noinline]] void copy_rows(const T* from, std::ptrdiff_t from_stride, T* to, std::ptrdiff_t to_stride, std::ptrdiff_t rows,
                                 std::ptrdiff_t columns, bool add = false) {
  for (std::ptrdiff_t r = 0; r < rows; ++r, from += from_stride, to += to_stride)
    for_vectors_unrolled<T, 4>(
        columns, [&](std::ptrdiff_t i, auto lane) STRATA_INLINE { put<T>(lane, to + i, lane.load(from + i), add); });
}

}  // namespace strata::simd
