// The kernel of operations whose results are sums of products and a bias, in plain loops.
#pragma once
#include <strata/reference/backend.hpp>
#include <strata/reference/gradients.hpp>

namespace strata::detail {

/// x: count samples of in_size elements; kernel: kernel_elements; bias: (filters), if has_bias; y: count samples of out_size
/// elements, the filters innermost. Products names these sizes; Products::for_each(f) calls f(index in y, in x, in the kernel)
/// for every product of one sample.
template <class Products, class P>
struct product_kernel {
  using T = typename P::value_type;
  static constexpr int in_size = Products::in_size, out_size = Products::out_size, filters = Products::filters;
  static constexpr bool has_bias = Products::has_bias;

  static constexpr void forward(const operands<T>& o) {
    for (int n = 0; n < o.count; ++n) {
      const T* x = o.x[0] + n * in_size;
      T* y = o.y + n * out_size;
      for (int i = 0; i < out_size; ++i) y[i] = has_bias ? o.w[1][i % filters] : T{};
      Products::for_each([&](int to, int from, int at) { y[to] += x[from] * o.w[0][at]; });
    }
  }

  static constexpr void backward(const operands<T>& o) {
    T* const dx = begin_input_gradient(o, 0, in_size);
    T* const dw = begin_weight_gradient(o, 0, Products::kernel_elements);
    T* const db = has_bias ? begin_weight_gradient(o, 1, filters) : nullptr;
    for (int n = 0; n < o.count; ++n) {
      const T *x = o.x[0] + n * in_size, *dy = o.dy + n * out_size;
      if (db)
        for (int i = 0; i < out_size; ++i) db[i % filters] += dy[i];
      if (dw) Products::for_each([&](int to, int from, int at) { dw[at] += x[from] * dy[to]; });
      if (dx) Products::for_each([&](int to, int from, int at) { dx[n * in_size + from] += o.w[0][at] * dy[to]; });
    }
  }
};

}  // namespace strata::detail
