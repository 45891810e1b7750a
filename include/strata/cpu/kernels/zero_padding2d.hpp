// Zero padding, row by row.
#pragma once
#include <algorithm>
#include <strata/cpu/backend.hpp>
#include <strata/cpu/simd/elementwise.hpp>
#include <strata/kernel/kernel.hpp>
#include <strata/layers/zero_padding2d.hpp>

namespace strata::core {

/// x: (count, H, W, C); y: (count, top + H + bottom, left + W + right, C).
template <padding_settings S, class P, shape In>
struct kernel<cpu, zero_padding<S>, P, In> {
  using T = typename P::value_type;
  static constexpr kernel_traits traits{.reads_input = false};
  static constexpr shape Out = S.output_shape(In).value;
  static constexpr int in_row = In[1] * In[2], out_row = Out[1] * In[2];
  // The rows and elements of x that are in y: a negative number crops.
  static constexpr int rows = In[0] + std::min(S.top, 0) + std::min(S.bottom, 0);
  static constexpr int width = (In[1] + std::min(S.left, 0) + std::min(S.right, 0)) * In[2];
  static constexpr int before_x = std::max(-S.top, 0) * in_row + std::max(-S.left, 0) * In[2];
  static constexpr int before_y = std::max(S.top, 0) * out_row + std::max(S.left, 0) * In[2];

  static void forward(const operands<T>& o) {
    for (int n = 0; n < o.count; ++n) {
      T* const y = o.y + std::ptrdiff_t(n) * Out.size();
      if constexpr (width == out_row) {
        std::fill_n(y, before_y, T{});
        std::fill_n(y + before_y + rows * out_row, std::max(S.bottom, 0) * out_row, T{});
      } else {
        std::fill_n(y, Out.size(), T{});
      }
      simd::copy_rows(o.x[0] + std::ptrdiff_t(n) * In.size() + before_x, in_row, y + before_y, out_row, rows, width);
    }
  }
  static void backward(const operands<T>& o) {
    for (int n = 0; o.dx[0] && n < o.count; ++n) {
      T* const dx = o.dx[0] + std::ptrdiff_t(n) * In.size();
      if (S.has_negative() && !o.adds_dx[0]) std::fill_n(dx, In.size(), T{});
      simd::copy_rows(o.dy + std::ptrdiff_t(n) * Out.size() + before_y, out_row, dx + before_x, in_row, rows, width,
                      o.adds_dx[0]);
    }
  }
};

}  // namespace strata::core
