// Max and average pooling in plain loops.
#pragma once
#include <algorithm>
#include <strata/layers/average_pool2d.hpp>
#include <strata/layers/global_pool2d.hpp>
#include <strata/layers/max_pool2d.hpp>
#include <strata/reference/backend.hpp>
#include <strata/reference/gradients.hpp>
#include <strata/reference/window.hpp>

namespace strata::core {

/// x: (count, H, W, C); y: (count, OH, OW, C).
template <pool_settings S, class P, shape In>
struct kernel<reference, max_pooling<S>, P, In> {
  using T = typename P::value_type;
  static constexpr int C = In[2], in_size = In.size(), out_size = max_pooling<S>::output_shape(In).value.size();

  /// Calls f(index in y, index in x) for the largest element of each window of one sample.
  static constexpr void for_each_winner(const T* x, auto&& f) {
    constexpr window_axis vertical = S.vertical(In), horizontal = S.horizontal(In);
    for (int i = 0; i < vertical.out(); ++i)
      for (int j = 0; j < horizontal.out(); ++j)
        for (int c = 0; c < C; ++c) {
          const int top = std::max(vertical.begin(i), 0), bottom = std::min(vertical.begin(i) + vertical.kernel, In[0]);
          const int left = std::max(horizontal.begin(j), 0), right = std::min(horizontal.begin(j) + horizontal.kernel, In[1]);
          int winner = (top * In[1] + left) * C + c;
          for (int row = top; row < bottom; ++row)
            for (int column = left; column < right; ++column) {
              const int at = (row * In[1] + column) * C + c;
              if (x[at] > x[winner] || x[at] != x[at]) winner = at;  // nan wins, so that it is not hidden
            }
          f((i * horizontal.out() + j) * C + c, winner);
        }
  }

  static constexpr void forward(const operands<T>& o) {
    for (int n = 0; n < o.count; ++n) {
      const T* x = o.x[0] + n * in_size;
      for_each_winner(x, [&](int to, int winner) { o.y[n * out_size + to] = x[winner]; });
    }
  }

  static constexpr void backward(const operands<T>& o) {
    T* const dx = detail::begin_input_gradient(o, 0, in_size);
    for (int n = 0; dx && n < o.count; ++n)
      for_each_winner(o.x[0] + n * in_size, [&](int to, int winner) { dx[n * in_size + winner] += o.dy[n * out_size + to]; });
  }
};

/// x: (count, H, W, C); y: (count, OH, OW, C).
template <pool_settings S, class P, shape In>
struct kernel<reference, average_pooling<S>, P, In> {
  using T = typename P::value_type;
  static constexpr kernel_traits traits{.reads_input = false};
  static constexpr window_axis vertical = S.vertical(In), horizontal = S.horizontal(In);
  static constexpr int C = In[2], in_size = In.size(), out_size = average_pooling<S>::output_shape(In).value.size();

  /// The number of elements of window i that lie inside the image.
  static constexpr int inside(window_axis axis, int i) {
    return std::min(axis.begin(i) + axis.kernel, axis.in) - std::max(axis.begin(i), 0);
  }
  static constexpr T divisor(int pixel) {
    return T(inside(vertical, pixel / horizontal.out()) * inside(horizontal, pixel % horizontal.out()));
  }

  static constexpr void forward(const operands<T>& o) {
    for (int n = 0; n < o.count; ++n) {
      const T* x = o.x[0] + n * in_size;
      T* y = o.y + n * out_size;
      for (int i = 0; i < out_size; ++i) y[i] = T{};
      detail::for_each_tap(vertical, horizontal, [&](int to, int from, int) {
        for (int c = 0; c < C; ++c) y[to * C + c] += x[from * C + c];
      });
      for (int i = 0; i < out_size; ++i) y[i] /= divisor(i / C);
    }
  }

  static constexpr void backward(const operands<T>& o) {
    T* const dx = detail::begin_input_gradient(o, 0, in_size);
    for (int n = 0; dx && n < o.count; ++n)
      detail::for_each_tap(vertical, horizontal, [&](int to, int from, int) {
        for (int c = 0; c < C; ++c) dx[n * in_size + from * C + c] += o.dy[n * out_size + to * C + c] / divisor(to);
      });
  }
};

/// x: (count, H, W, C); y: (count, C).
template <class P, shape In>
struct kernel<reference, global_average_pool2d, P, In> {
  using T = typename P::value_type;
  static constexpr kernel_traits traits{.reads_input = false};
  static constexpr int C = In[2], size = In.size(), pixels = size / C;

  static constexpr void forward(const operands<T>& o) {
    for (int n = 0; n < o.count; ++n) {
      T* y = o.y + n * C;
      for (int c = 0; c < C; ++c) y[c] = T{};
      for (int i = 0; i < size; ++i) y[i % C] += o.x[0][n * size + i];
      for (int c = 0; c < C; ++c) y[c] /= pixels;
    }
  }

  static constexpr void backward(const operands<T>& o) {
    T* const dx = detail::begin_input_gradient(o, 0, size);
    for (int i = 0; dx && i < o.count * size; ++i) dx[i] += o.dy[i / size * C + i % C] / pixels;
  }
};

/// Max pooling whose window is the whole image. x: (count, H, W, C); y: (count, C).
template <class P, shape In>
struct kernel<reference, global_max_pool2d, P, In>
    : kernel<reference, max_pooling<pool_settings{.window_height = In[0], .window_width = In[1]}>, P, In> {};

}  // namespace strata::core
