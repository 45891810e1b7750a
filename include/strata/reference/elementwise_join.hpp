// Element-wise joins, in one plain loop.
#pragma once
#include <strata/layers/elementwise_join.hpp>
#include <strata/reference/backend.hpp>
#include <strata/reference/gradients.hpp>

namespace strata::core {

/// x[k], y, dy, dx[k]: (count, shape of each branch).
template <elementwise_join Join, class P, shape First, shape... Rest>
struct kernel<reference, Join, P, First, Rest...> {
  using T = typename P::value_type;
  static constexpr kernel_traits traits{.reads_input = Join::reads_input};
  static constexpr int branches = 1 + sizeof...(Rest), size = First.size();

  static constexpr void forward(const operands<T>& o) {
    for (int i = 0; i < o.count * size; ++i) {
      T x[branches] = {};
      for (int k = 0; k < branches; ++k) x[k] = o.x[k][i];
      o.y[i] = Join::template value<T>(x);
    }
  }

  static constexpr void backward(const operands<T>& o) {
    for (int k = 0; k < branches; ++k) detail::begin_input_gradient(o, k, size);
    for (int i = 0; i < o.count * size; ++i) {
      T x[branches] = {}, dx[branches] = {};
      for (int k = 0; traits.reads_input && k < branches; ++k) x[k] = o.x[k][i];
      Join::template gradients<T>(x, o.dy[i], dx);
      for (int k = 0; k < branches; ++k)
        if (o.dx[k]) o.dx[k][i] += dx[k];
    }
  }
};

}  // namespace strata::core
