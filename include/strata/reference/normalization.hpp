// Normalization with fixed moments in plain loops.
#pragma once
#include <algorithm>
#include <cmath>
#include <strata/layers/normalization.hpp>
#include <strata/reference/backend.hpp>
#include <strata/reference/gradients.hpp>

namespace strata::core {

/// x, y, dy, dx: (count, ..., C); mean, variance: (C).
template <class P, shape In>
struct kernel<reference, normalization, P, In> {
  using T = typename P::value_type;
  static constexpr kernel_traits traits{.reads_input = false};
  static constexpr int C = In.last();

  static T deviation(const operands<T>& o, int c) {
    return T(std::sqrt(std::max(double(o.w[1][c]), normalization::least_variance)));
  }
  static void forward(const operands<T>& o) {
    for (int i = 0; i < o.count * In.size(); ++i) o.y[i] = (o.x[0][i] - o.w[0][i % C]) / deviation(o, i % C);
  }
  static void backward(const operands<T>& o) {
    T* const dx = detail::begin_input_gradient(o, 0, In.size());
    for (int i = 0; dx && i < o.count * In.size(); ++i) dx[i] += o.dy[i] / deviation(o, i % C);
  }
};

}  // namespace strata::core
