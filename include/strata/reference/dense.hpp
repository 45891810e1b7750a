// Dense layers in plain loops: y = x W + b.
#pragma once
#include <strata/layers/dense.hpp>
#include <strata/reference/backend.hpp>
#include <strata/reference/gradients.hpp>

namespace strata::core {

/// x: (count, K); W: (K, F); b: (F); y, dy: (count, F).
template <dense_settings S, class P, shape In>
struct kernel<reference, affine<S>, P, In> {
  using T = typename P::value_type;
  static constexpr int K = In[0], N = S.units;

  static constexpr void forward(const operands<T>& o) {
    for (int n = 0; n < o.count; ++n)
      for (int j = 0; j < N; ++j) {
        T sum = S.bias ? o.w[1][j] : T{};
        for (int k = 0; k < K; ++k) sum += o.x[0][n * K + k] * o.w[0][k * N + j];
        o.y[n * N + j] = sum;
      }
  }

  static constexpr void backward(const operands<T>& o) {
    T* const dx = detail::begin_input_gradient(o, 0, K);
    T* const dw = detail::begin_weight_gradient(o, 0, K * N);
    T* const db = S.bias ? detail::begin_weight_gradient(o, 1, N) : nullptr;
    for (int n = 0; n < o.count; ++n) {
      const T* dy = o.dy + n * N;
      if (db)
        for (int j = 0; j < N; ++j) db[j] += dy[j];
      for (int k = 0; k < K; ++k) {
        T sum{};
        for (int j = 0; j < N; ++j) {
          if (dw) dw[k * N + j] += o.x[0][n * K + k] * dy[j];
          sum += dy[j] * o.w[0][k * N + j];
        }
        if (dx) dx[n * K + k] += sum;
      }
    }
  }
};

}  // namespace strata::core
