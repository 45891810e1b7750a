// Layer normalization on vectors of channels.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <strata/cpu/backend.hpp>
#include <strata/cpu/simd/reductions.hpp>
#include <strata/kernel/kernel.hpp>
#include <strata/layers/layer_norm.hpp>

namespace strata {

namespace simd {

template <class T>
struct row_moments {
  T mean, inverse_deviation;
};

/// The mean of C elements as a distance from the first one: it is exact if all are equal.
template <class T>
[[gnu::noinline, gnu::cold]] T refined_mean(const T* x, int C) {
  const vec<T> first = broadcast(x[0]);
  return x[0] + sum_over<T>(C, [&](int i, auto lane) STRATA_INLINE { return lane.load(x + i) - first; }) / T(C);
}

/// One row of C elements: y = z * gamma + beta with z = (x - mean) / deviation. gamma and beta may be null.
template <class T>
[[gnu::noinline]] row_moments<T> normalize_row(const T* x, int C, T epsilon, const T* gamma, const T* beta, T* y) {
  vec<T> mean = broadcast(sum_over<T>(C, [&](int i, auto lane) STRATA_INLINE { return lane.load(x + i); }) / T(C));
  const T squares = sum_over<T>(C, [&](int i, auto lane) STRATA_INLINE {
    const vec<T> d = lane.load(x + i) - mean;
    return d * d;
  });
  // If all elements are equal, z must be exactly 0. They can only be if they differ from the mean by no more than its rounding
  // error, with 32 sums side by side. Up to 64 elements, powers of two make no error.
  if (C > 2 * side_by_side || (C & (C - 1)) != 0) {
    const T rounding = T(C / side_by_side + 8) * std::numeric_limits<T>::epsilon() * mean[0];
    if (squares < T(C) * (rounding * rounding)) [[unlikely]]
      mean = broadcast(refined_mean(x, C));
  }
  const T inverse = 1 / std::sqrt(squares / T(C) + epsilon);
  for_vectors<T>(C, [&](std::ptrdiff_t i, auto lane) STRATA_INLINE {
    vec<T> z = (lane.load(x + i) - mean) * inverse;
    if (gamma) z = z * lane.load(gamma + i);
    if (beta) z = rounded<T>(z) + lane.load(beta + i);
    lane.store(y + i, z);
  });
  return {mean[0], inverse};
}

/// One row, with g = gamma * dy: dx (+)= (g - mean(g) - z * mean(g z)) / deviation, unless dx is null. Adds dy * z and dy to the
/// sums, which are whole vectors long.
template <class T>
[[gnu::noinline]] void normalized_row_gradient(const T* x, const T* dy, int C, row_moments<T> m, const T* gamma, T* dx, bool add,
                                               T* sum_of_dy_z, T* sum_of_dy) {
  const vec<T> mean = broadcast(m.mean), inverse = broadcast(m.inverse_deviation);
  const auto normal = [&](std::ptrdiff_t i, auto lane) STRATA_INLINE { return (lane.load(x + i) - mean) * inverse; };
  const auto scaled = [&](std::ptrdiff_t i, auto lane) STRATA_INLINE {
    const vec<T> d = lane.load(dy + i);
    return gamma ? rounded<T>(d * lane.load(gamma + i)) : d;
  };
  T sums[2];
  sums_over<T, 2>(C, sums, [&](int i, auto lane, vec<T>* sum) STRATA_INLINE {
    const vec<T> z = normal(i, lane), g = scaled(i, lane), d = lane.load(dy + i);
    sum[0] += g, sum[1] = multiply_add(g, z, sum[1]);
    store(sum_of_dy_z + i, multiply_add(d, z, load(sum_of_dy_z + i)));
    store(sum_of_dy + i, d + load(sum_of_dy + i));
  });
  const vec<T> mean_g = broadcast(sums[0] / T(C)), mean_gz = broadcast(sums[1] / T(C));
  if (dx)
    for_vectors<T>(C, [&](std::ptrdiff_t i, auto lane) STRATA_INLINE {
      put<T>(lane, dx + i, multiply_add(-normal(i, lane), mean_gz, scaled(i, lane) - mean_g) * inverse, add);
    });
}

}  // namespace simd

namespace core {
/// x, y, dy, dx: (count, ..., C); gamma, beta: (C). saved: mean and 1 / deviation of each row.
template <layer_norm_settings S, class P, shape In>
struct kernel<cpu, layer_normalization<S>, P, In> {
  using T = typename P::value_type;
  static constexpr int C = In.last(), rows = In.size() / C, stride = simd::aligned_size<T>(C);
  static constexpr kernel_traits traits{.saved = 2 * rows, .scratch = 2 * stride};
  static constexpr int gamma = 0, beta = S.scale;

  static const T* gamma_of(const operands<T>& o) { return S.scale ? o.w[gamma] : nullptr; }

  static void forward(const operands<T>& o) {
    for (std::ptrdiff_t n = 0; n < std::ptrdiff_t(o.count) * rows; ++n) {
      const auto m =
          simd::normalize_row(o.x[0] + n * C, C, T(S.epsilon.value()), gamma_of(o), S.center ? o.w[beta] : nullptr, o.y + n * C);
      o.saved[2 * n] = m.mean, o.saved[2 * n + 1] = m.inverse_deviation;
    }
  }

  static void backward(const operands<T>& o) {
    T* const sums[2] = {o.scratch, o.scratch + stride};
    T* const to[2] = {S.scale ? o.dw[gamma] : nullptr, S.center ? o.dw[beta] : nullptr};
    std::fill_n(o.scratch, traits.scratch, T{});
    for (int k = 0; k < 2; ++k)
      if (to[k] && o.adds_dw) std::copy_n(to[k], C, sums[k]);
    for (std::ptrdiff_t n = 0; n < std::ptrdiff_t(o.count) * rows; ++n)
      simd::normalized_row_gradient(o.x[0] + n * C, o.dy + n * C, C, {o.saved[2 * n], o.saved[2 * n + 1]}, gamma_of(o),
                                    o.dx[0] ? o.dx[0] + n * C : nullptr, o.adds_dx[0], sums[0], sums[1]);
    for (int k = 0; k < 2; ++k)
      if (to[k]) std::copy_n(sums[k], C, to[k]);
  }
};
}  // namespace core

}  // namespace strata
