// Sums and maxima over one row. The order of a sum depends on the length of the row only, not on the width of vectors.
#pragma once
#include <strata/cpu/simd/elementwise.hpp>

namespace strata::simd {

namespace detail {
/// Lane i gets the value of lane i + Distance, where there is one.
template <class T, int Distance, int... I>
STRATA_INLINE inline vec<T> moved_down(vec<T> v, std::integer_sequence<int, I...>) {
  return shuffled<vec<T>>(v, v, std::integer_sequence<int, ((I + Distance) % lanes<T>)...>{});
}
}  // namespace detail

/// Combines all lanes: i with i + lanes / 2, then with i + lanes / 4, and so on.
template <class T, class F>
STRATA_INLINE inline T fold_lanes(vec<T> v, F&& f) {
  constexpr int L = lanes<T>;
  const auto halve = [&](auto half) STRATA_INLINE {
    if constexpr (half < L) v = f(v, detail::moved_down<T, half>(v, std::make_integer_sequence<int, L>{}));
  };
  halve(std::integral_constant<int, 8>{}), halve(std::integral_constant<int, 4>{});
  halve(std::integral_constant<int, 2>{}), halve(std::integral_constant<int, 1>{});
  return v[0];
}

/// The number of partial sums. Element i is added to sum i % side_by_side.
inline constexpr int side_by_side = 32;

/// K sums over n elements. f(index, lanes, sums) STRATA_INLINE adds a vector to each of the K sums.
template <class T, int K, class F>
STRATA_INLINE inline void sums_over(int n, T (&total)[K], F&& f) {
  constexpr int L = lanes<T>, V = side_by_side / L;
  vec<T> sum[V][K] = {};
  int i = 0;
  for (; i + side_by_side <= n; i += side_by_side) {
    STRATA_UNROLL
    for (int v = 0; v < V; ++v) {
      f(i + v * L, whole_vector<T>{}, sum[v]);
    }
  }
  STRATA_UNROLL
  for (int v = 0; v < V; ++v) {
    const int at = i + v * L, rest = n - at;
    if (rest >= L)
      f(at, whole_vector<T>{}, sum[v]);
    else if (rest > 0)
      f(at, part_of_vector<T>{rest}, sum[v]);
  }
  unroll<K>([&](auto k) STRATA_INLINE {
    for (int half = V / 2; half > 0; half /= 2)
      for (int v = 0; v < half; ++v) sum[v][k] += sum[v + half][k];
    total[k] = fold_lanes<T>(sum[0][k], [](vec<T> a, vec<T> b) STRATA_INLINE { return a + b; });
  });
}

/// The sum of f(index, lanes) STRATA_INLINE over n elements. Lanes without an element do not count.
template <class T, class F>
STRATA_INLINE inline T sum_over(int n, F&& f) {
  T total[1];
  sums_over<T, 1>(n, total, [&](int i, auto lane, vec<T>* sum) STRATA_INLINE {
    *sum += rounded<T>(lane.select(f(i, lane), broadcast(T(0))));
  });
  return total[0];
}

/// The largest of n elements. If one is nan, the result may be nan or not.
template <class T>
STRATA_INLINE inline T largest_of(const T* x, int n) {
  constexpr int L = lanes<T>;
  const vec<T> first = broadcast(x[0]);
  vec<T> top[2] = {first, first};
  int i = 0;
  for (; i + 2 * L <= n; i += 2 * L) {
    STRATA_UNROLL
    for (int v = 0; v < 2; ++v) top[v] = max<T>(load(x + i + v * L), top[v]);
  }
  for_vectors<T>(n - i, [&](std::ptrdiff_t j, auto lane)
                            STRATA_INLINE { top[0] = max<T>(lane.select(lane.load(x + i + j), first), top[0]); });
  return fold_lanes<T>(max<T>(top[0], top[1]), [](vec<T> a, vec<T> b) STRATA_INLINE { return max<T>(a, b); });
}

}  // namespace strata::simd
