// Activations in plain loops: one kernel for all elementwise ones, and softmax.
#pragma once
#include <strata/reference/activation_functions.hpp>
#include <strata/reference/backend.hpp>
#include <strata/reference/gradients.hpp>

namespace strata::core {

/// x, y, dy, dx: (count, shape of the input).
template <elementwise_activation A, class P, shape In>
struct kernel<reference, A, P, In> {
  using T = typename P::value_type;
  using function = activation_function<A>;
  static constexpr kernel_traits traits{.reads_input = function::uses_input, .reads_output = function::uses_output};

  static constexpr void forward(const operands<T>& o) {
    for (int i = 0; i < o.count * In.size(); ++i) o.y[i] = function::value(o.x[0][i]);
  }

  static constexpr void backward(const operands<T>& o) {
    T* const dx = detail::begin_input_gradient(o, 0, In.size());
    for (int i = 0; dx && i < o.count * In.size(); ++i)
      dx[i] += o.dy[i] * function::derivative(traits.reads_input ? o.x[0][i] : T{}, traits.reads_output ? o.y[i] : T{});
  }
};

/// Softmax over the last axis. x, y, dy, dx: (count, ..., C).
template <class P, shape In>
struct kernel<reference, softmax, P, In> {
  using T = typename P::value_type;
  static constexpr kernel_traits traits{.reads_input = false, .reads_output = true};
  static constexpr int C = In.last(), rows = In.size() / C;

  static void forward(const operands<T>& o) {
    for (int n = 0; n < o.count * rows; ++n) {
      const T* x = o.x[0] + n * C;
      T *y = o.y + n * C, top = x[0], sum{};
      for (int i = 1; i < C; ++i) top = x[i] > top ? x[i] : top;
      for (int i = 0; i < C; ++i) sum += y[i] = std::exp(x[i] - top);
      for (int i = 0; i < C; ++i) y[i] /= sum;
    }
  }

  static constexpr void backward(const operands<T>& o) {
    T* const dx = detail::begin_input_gradient(o, 0, In.size());
    for (int n = 0; dx && n < o.count * rows; ++n) {
      const T *y = o.y + n * C, *dy = o.dy + n * C;
      T dot{};
      for (int i = 0; i < C; ++i) dot += y[i] * dy[i];
      for (int i = 0; i < C; ++i) dx[n * C + i] += y[i] * (dy[i] - dot);
    }
  }
};

}  // namespace strata::core
