// Transposed convolution in plain loops.
#pragma once
#include <strata/layers/conv2d_transpose.hpp>
#include <strata/reference/backend.hpp>
#include <strata/reference/gradients.hpp>
#include <strata/reference/window.hpp>

namespace strata {

/// x: (count, H, W, C); kernel: (KH, KW, F, C); bias: (F); y: (count, OH, OW, F).
template <transposed_conv_settings S, class P, shape In>
struct kernel<reference, transposed_convolution<S>, P, In> : kernel_defaults {
  using T = typename P::value_type;
  static constexpr shape Out = S.output(In);
  static constexpr int C = In[2], F = S.filters, in_size = In.size(), out_size = Out.size();
  static constexpr int kernel_elements = S.kernel_height * S.kernel_width * F * C;

  /// f(index in y, in x, in the kernel) for every product of one sample.
  static constexpr void for_each_product(auto&& f) {
    using backwards = convolution<S.backwards(In)>;
    detail::for_each_tap(backwards::vertical(Out), backwards::horizontal(Out), [&](int from, int to, int tap) {
      for (int k = 0; k < F; ++k)
        for (int c = 0; c < C; ++c) f(to * F + k, from * C + c, (tap * F + k) * C + c);
    });
  }

  static constexpr void forward(const operands<T>& o) {
    for (int n = 0; n < o.count; ++n) {
      const T* x = o.x[0] + n * in_size;
      T* y = o.y + n * out_size;
      for (int i = 0; i < out_size; ++i) y[i] = S.bias ? o.w[1][i % F] : T{};
      for_each_product([&](int to, int from, int at) { y[to] += x[from] * o.w[0][at]; });
    }
  }

  static constexpr void backward(const operands<T>& o) {
    T* const dx = detail::begin_input_gradient(o, 0, in_size);
    T* const dw = detail::begin_weight_gradient(o, 0, kernel_elements);
    T* const db = S.bias ? detail::begin_weight_gradient(o, 1, F) : nullptr;
    for (int n = 0; n < o.count; ++n) {
      const T *x = o.x[0] + n * in_size, *dy = o.dy + n * out_size;
      if (db)
        for (int i = 0; i < out_size; ++i) db[i % F] += dy[i];
      if (dw) for_each_product([&](int to, int from, int at) { dw[at] += x[from] * dy[to]; });
      if (dx) for_each_product([&](int to, int from, int at) { dx[n * in_size + from] += o.w[0][at] * dy[to]; });
    }
  }
};

}  // namespace strata
