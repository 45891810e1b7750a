// Normalization with fixed moments, on vectors of features.
#pragma once
#include <algorithm>
#include <cmath>
#include <strata/cpu/backend.hpp>
#include <strata/cpu/simd/elementwise.hpp>
#include <strata/kernel/kernel.hpp>
#include <strata/layers/normalization.hpp>

namespace strata {

namespace simd {

/// y = (x - mean) * factor; mean and factor have `width` elements.
template <class T>
[[gnu::noinline]] void normalize_features(const T* x, std::ptrdiff_t size, int width, const T* mean, const T* factor, T* y) {
  for (std::ptrdiff_t at = 0; at < size; at += width)
    for_vectors_unrolled<T, 4>(std::min<std::ptrdiff_t>(width, size - at), [&](std::ptrdiff_t j, auto lane) STRATA_INLINE {
      lane.store(y + at + j, (lane.load(x + at + j) - lane.load(mean + j)) * lane.load(factor + j));
    });
}

/// dx (+)= dy * factor.
template <class T>
[[gnu::noinline]] void normalized_feature_gradients(const T* dy, std::ptrdiff_t size, int width, const T* factor, T* dx,
                                                    bool add) {
  for (std::ptrdiff_t at = 0; at < size; at += width)
    for_vectors_unrolled<T, 4>(std::min<std::ptrdiff_t>(width, size - at), [&](std::ptrdiff_t j, auto lane) STRATA_INLINE {
      put<T>(lane, dx + at + j, lane.load(dy + at + j) * lane.load(factor + j), add);
    });
}

}  // namespace simd

namespace core {
/// x, y, dy, dx: (count, ..., C); mean, variance: (C). derived: the means, then 1 / deviation, for a row of several pixels.
template <class P, shape In>
struct kernel<cpu, normalization, P, In> {
  using T = typename P::value_type;
  static constexpr int C = In.last(), width = simd::row_width(C);
  static constexpr kernel_traits traits{.derived = 2 * width, .reads_input = false};

  static void derive(const T* const* w, T* to) {
    for (int j = 0; j < width; ++j) {
      to[j] = w[0][j % C];
      to[width + j] = T(1 / std::sqrt(std::max(double(w[1][j % C]), normalization::least_variance)));
    }
  }
  static void forward(const operands<T>& o) {
    simd::normalize_features(o.x[0], std::ptrdiff_t(o.count) * In.size(), width, o.derived, o.derived + width, o.y);
  }
  static void backward(const operands<T>& o) {
    if (o.dx[0])
      simd::normalized_feature_gradients(o.dy, std::ptrdiff_t(o.count) * In.size(), width, o.derived + width, o.dx[0],
                                         o.adds_dx[0]);
  }
};
}  // namespace core

}  // namespace strata
