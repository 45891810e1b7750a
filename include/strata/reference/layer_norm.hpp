// Layer normalization in plain loops.
#pragma once
#include <cmath>
#include <strata/layers/layer_norm.hpp>
#include <strata/reference/backend.hpp>
#include <strata/reference/gradients.hpp>

namespace strata::core {

/// x, y, dy, dx: (count, ..., C); gamma, beta: (C).
template <layer_norm_settings S, class P, shape In>
struct kernel<reference, layer_normalization<S>, P, In> {
  using T = typename P::value_type;
  static constexpr int C = In.last(), rows = In.size() / C;
  static constexpr int gamma = 0, beta = S.scale;

  struct moments {
    T mean, inverse_deviation;
  };
  static moments moments_of(const T* x) {
    T sum{}, squares{};
    for (int c = 0; c < C; ++c) sum += x[c] - x[0];
    const T mean = x[0] + sum / C;  // exact where all elements are equal
    for (int c = 0; c < C; ++c) squares += (x[c] - mean) * (x[c] - mean);
    return {mean, 1 / std::sqrt(squares / C + T(S.epsilon.value()))};
  }

  static void forward(const operands<T>& o) {
    for (int n = 0; n < o.count * rows; ++n) {
      const T* x = o.x[0] + n * C;
      const auto [mean, inverse_deviation] = moments_of(x);
      for (int c = 0; c < C; ++c) {
        const T z = (x[c] - mean) * inverse_deviation;
        o.y[n * C + c] = (S.scale ? o.w[gamma][c] : T(1)) * z + (S.center ? o.w[beta][c] : T{});
      }
    }
  }

  /// With z = (x - mean) / deviation and g = gamma * dy: dx = (g - mean(g) - z * mean(g * z)) / deviation.
  static void backward(const operands<T>& o) {
    T* const dx = detail::begin_input_gradient(o, 0, In.size());
    T* const dgamma = S.scale ? detail::begin_weight_gradient(o, gamma, C) : nullptr;
    T* const dbeta = S.center ? detail::begin_weight_gradient(o, beta, C) : nullptr;
    for (int n = 0; n < o.count * rows; ++n) {
      const T *x = o.x[0] + n * C, *dy = o.dy + n * C;
      const auto [mean, inverse_deviation] = moments_of(x);
      T mean_g{}, mean_gz{};
      for (int c = 0; c < C; ++c) {
        const T z = (x[c] - mean) * inverse_deviation, g = (S.scale ? o.w[gamma][c] : T(1)) * dy[c];
        mean_g += g / C;
        mean_gz += g * z / C;
        if (dgamma) dgamma[c] += dy[c] * z;
        if (dbeta) dbeta[c] += dy[c];
      }
      for (int c = 0; dx && c < C; ++c) {
        const T z = (x[c] - mean) * inverse_deviation, g = (S.scale ? o.w[gamma][c] : T(1)) * dy[c];
        dx[n * C + c] += (g - mean_g - z * mean_gz) * inverse_deviation;
      }
    }
  }
};

}  // namespace strata::core
