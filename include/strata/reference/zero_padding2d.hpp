// Zero padding in plain loops.
#pragma once
#include <strata/layers/zero_padding2d.hpp>
#include <strata/reference/backend.hpp>
#include <strata/reference/gradients.hpp>

namespace strata::core {

/// x: (count, H, W, C); y: (count, top + H + bottom, left + W + right, C).
template <padding_settings S, class P, shape In>
struct kernel<reference, zero_padding<S>, P, In> {
  using T = typename P::value_type;
  static constexpr kernel_traits traits{.reads_input = false};
  static constexpr shape Out = S.output_shape(In).value;

  /// Calls f(index in y, index in x) for every element of x of one sample that is not cropped.
  static constexpr void for_each_element(auto&& f) {
    for (int row = 0; row < In[0]; ++row)
      for (int column = 0; column < In[1]; ++column)
        for (int c = 0; c < In[2]; ++c)
          if (const int to_row = S.top + row, to = S.left + column; to_row >= 0 && to_row < Out[0] && to >= 0 && to < Out[1])
            f((to_row * Out[1] + to) * In[2] + c, (row * In[1] + column) * In[2] + c);
  }

  static constexpr void forward(const operands<T>& o) {
    for (int n = 0; n < o.count; ++n) {
      T* y = o.y + n * Out.size();
      for (int i = 0; i < Out.size(); ++i) y[i] = T{};
      for_each_element([&](int to, int from) { y[to] = o.x[0][n * In.size() + from]; });
    }
  }

  static constexpr void backward(const operands<T>& o) {
    T* const dx = detail::begin_input_gradient(o, 0, In.size());
    for (int n = 0; dx && n < o.count; ++n)
      for_each_element([&](int to, int from) { dx[n * In.size() + from] += o.dy[n * Out.size() + to]; });
  }
};

}  // namespace strata::core
