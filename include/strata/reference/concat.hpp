// Concatenation along the last axis in plain loops.
#pragma once
#include <strata/layers/concat.hpp>
#include <strata/reference/backend.hpp>
#include <strata/reference/gradients.hpp>

namespace strata::core {

/// x[k]: (count, ..., C_k); y: (count, ..., sum of C_k).
template <class P, shape First, shape... Rest>
struct kernel<reference, stack_of_branches, P, First, Rest...> {
  using T = typename P::value_type;
  static constexpr kernel_traits traits{.reads_input = false};
  static constexpr int branches = 1 + sizeof...(Rest), pixels = First.size() / First.last();
  static constexpr int channels[branches] = {First.last(), Rest.last()...};

  /// Calls f(index in y, branch, index in that branch) for each element.
  static constexpr void for_each_element(int count, auto&& f) {
    for (int pixel = 0, to = 0; pixel < count * pixels; ++pixel)
      for (int k = 0; k < branches; ++k)
        for (int c = 0; c < channels[k]; ++c) f(to++, k, pixel * channels[k] + c);
  }

  static constexpr void forward(const operands<T>& o) {
    for_each_element(o.count, [&](int to, int k, int from) { o.y[to] = o.x[k][from]; });
  }

  static constexpr void backward(const operands<T>& o) {
    for (int k = 0; k < branches; ++k) detail::begin_input_gradient(o, k, pixels * channels[k]);
    for_each_element(o.count, [&](int to, int k, int from) {
      if (o.dx[k]) o.dx[k][from] += o.dy[to];
    });
  }
};

}  // namespace strata::core
