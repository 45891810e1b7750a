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
  static constexpr shape Out = zero_padding<S>::output_shape(In).value;
  static constexpr int in_row = In[1] * In[2], out_row = Out[1] * In[2], before = S.top * out_row + S.left * In[2];

  static void forward(const operands<T>& o) {
    for (int n = 0; n < o.count; ++n) {
      T* const y = o.y + std::ptrdiff_t(n) * Out.size();
      if constexpr (out_row == in_row) {
        std::fill_n(y, before, T{});
        std::fill_n(y + before + In.size(), S.bottom * out_row, T{});
      } else {
        std::fill_n(y, Out.size(), T{});
      }
      simd::copy_rows(o.x[0] + std::ptrdiff_t(n) * In.size(), in_row, y + before, out_row, In[0], in_row);
    }
  }
  static void backward(const operands<T>& o) {
    for (int n = 0; o.dx[0] && n < o.count; ++n)
      simd::copy_rows(o.dy + std::ptrdiff_t(n) * Out.size() + before, out_row, o.dx[0] + std::ptrdiff_t(n) * In.size(), in_row,
                      In[0], in_row, o.adds_dx[0]);
  }
};

}  // namespace strata::core
