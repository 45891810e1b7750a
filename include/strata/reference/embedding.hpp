// Embedding in plain loops: copies rows of a table.
#pragma once
#include <strata/layers/embedding.hpp>
#include <strata/reference/backend.hpp>
#include <strata/reference/gradients.hpp>

namespace strata::core {

/// x: (count, N), indices of rows, which have no gradient; table: (rows, W); y: (count, N, W). refuse_other_rows has checked the
/// indices.
template <embedding_settings S, class P, shape In>
struct kernel<reference, lookup<S>, P, In> {
  using T = typename P::value_type;

  static constexpr void forward(const operands<T>& o) {
    for (int i = 0; i < o.count * In.size(); ++i)
      for (int j = 0; j < S.width; ++j) o.y[i * S.width + j] = o.w[0][int(o.x[0][i]) * S.width + j];
  }

  static constexpr void backward(const operands<T>& o) {
    T* const dw = detail::begin_weight_gradient(o, 0, S.rows * S.width);
    for (int i = 0; dw && i < o.count * In.size(); ++i)
      for (int j = 0; j < S.width; ++j) dw[int(o.x[0][i]) * S.width + j] += o.dy[i * S.width + j];
  }
};

}  // namespace strata::core
