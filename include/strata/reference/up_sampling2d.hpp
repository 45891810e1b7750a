// Enlarging images in plain loops.
#pragma once
#include <strata/layers/up_sampling2d.hpp>
#include <strata/reference/backend.hpp>
#include <strata/reference/gradients.hpp>

namespace strata::core {

/// x: (count, H, W, C); y: (count, height * H, width * W, C).
template <up_sampling_settings S, class P, shape In>
struct kernel<reference, up_sampling<S>, P, In> {
  using T = typename P::value_type;
  static constexpr kernel_traits traits{.reads_input = false};
  static constexpr shape Out = up_sampling<S>::output_shape(In).value;

  /// Calls f(index in y, index in x, weight) for the pixels of x, up to four, whose weighted mean is a pixel of y.
  static constexpr void for_each_part(auto&& f) {
    for (int i = 0; i < Out[0]; ++i)
      for (int j = 0; j < Out[1]; ++j) {
        const detail::blended_pixel down = up_sampling<S>::row(In, i), across = up_sampling<S>::column(In, j);
        const auto part = [&](int row, int column, double weight) {
          for (int c = 0; weight != 0 && c < In[2]; ++c)
            f((i * Out[1] + j) * In[2] + c, (row * In[1] + column) * In[2] + c, T(weight));
        };
        part(down.low, across.low, (1 - down.weight) * (1 - across.weight));
        part(down.low, across.high, (1 - down.weight) * across.weight);
        part(down.high, across.low, down.weight * (1 - across.weight));
        part(down.high, across.high, down.weight * across.weight);
      }
  }

  static constexpr void forward(const operands<T>& o) {
    for (int i = 0; i < o.count * Out.size(); ++i) o.y[i] = T{};
    for (int n = 0; n < o.count; ++n)
      for_each_part([&](int to, int from, T w) { o.y[n * Out.size() + to] += w * o.x[0][n * In.size() + from]; });
  }

  static constexpr void backward(const operands<T>& o) {
    T* const dx = detail::begin_input_gradient(o, 0, In.size());
    for (int n = 0; dx && n < o.count; ++n)
      for_each_part([&](int to, int from, T w) { dx[n * In.size() + from] += w * o.dy[n * Out.size() + to]; });
  }
};

}  // namespace strata::core
