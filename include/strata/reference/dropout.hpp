// Dropout in plain loops. Forward and backward draw the same mask.
#pragma once
#include <strata/layers/dropout.hpp>
#include <strata/reference/backend.hpp>
#include <strata/reference/gradients.hpp>

namespace strata::core {

/// x, y, dy, dx: (count, shape of the input).
template <decimal Rate, shape Noise, class P, shape In>
struct kernel<reference, dropout<Rate, Noise>, P, In> {
  using operation = dropout<Rate, Noise>;
  using T = typename P::value_type;
  static constexpr kernel_traits traits{.reads_input = false};
  static constexpr int size = In.size();
  static constexpr T scale = T(1 / (1 - operation::rate));

  /// The factor of element i of the micro-batch: 0 or 1 / (1 - rate).
  static constexpr T factor(const operands<T>& o, int i) {
    return operation::keeps(o.random, o.first_sample + i / size, operation::template noise_of<In>(i % size)) ? scale : T{};
  }
  static constexpr void forward(const operands<T>& o) {
    for (int i = 0; i < o.count * size; ++i) o.y[i] = o.x[0][i] * factor(o, i);
  }
  static constexpr void infer(const operands<T>& o) {
    for (int i = 0; i < o.count * size; ++i) o.y[i] = o.x[0][i];
  }
  static constexpr void backward(const operands<T>& o) {
    T* const dx = detail::begin_input_gradient(o, 0, size);
    for (int i = 0; dx && i < o.count * size; ++i) dx[i] += o.dy[i] * factor(o, i);
  }
};

}  // namespace strata::core
