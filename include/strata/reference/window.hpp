// A loop over all elements under a sliding window.
#pragma once
#include <strata/layers/window.hpp>

namespace strata::detail {

/// Calls f(output pixel, input pixel, tap) for every tap that lies inside the image: window after window, and in each window row
/// after row.
constexpr void for_each_tap(window_axis vertical, window_axis horizontal, auto&& f) {
  for (int i = 0; i < vertical.out(); ++i)
    for (int j = 0; j < horizontal.out(); ++j)
      for (int a = 0; a < vertical.kernel; ++a)
        for (int b = 0; b < horizontal.kernel; ++b) {
          const int row = vertical.begin(i) + a * vertical.dilation, column = horizontal.begin(j) + b * horizontal.dilation;
          if (row >= 0 && row < vertical.in && column >= 0 && column < horizontal.in)
            f(i * horizontal.out() + j, row * horizontal.in + column, a * horizontal.kernel + b);
        }
}

}  // namespace strata::detail
