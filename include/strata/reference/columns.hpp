// Some columns of the data in plain loops.
#pragma once
#include <strata/layers/columns.hpp>
#include <strata/reference/backend.hpp>
#include <strata/reference/gradients.hpp>

namespace strata::core {

/// x: (count, ..., C); y: (count, ..., S.count).
template <column_settings S, class P, shape In>
struct kernel<reference, column_slice<S>, P, In> {
  using T = typename P::value_type;
  static constexpr kernel_traits traits{.reads_input = false};

  /// f(index in y, in x) for every element of y.
  static constexpr void for_each_element(int count, auto&& f) {
    for (int row = 0; row < count * (In.size() / In.last()); ++row)
      for (int i = 0; i < S.count; ++i) f(row * S.count + i, row * In.last() + S.first + i);
  }

  static constexpr void forward(const operands<T>& o) {
    for_each_element(o.count, [&](int to, int from) { o.y[to] = o.x[0][from]; });
  }

  static constexpr void backward(const operands<T>& o) {
    if (T* const dx = detail::begin_input_gradient(o, 0, In.size()))
      for_each_element(o.count, [&](int to, int from) { dx[from] += o.dy[to]; });
  }
};

}  // namespace strata::core
