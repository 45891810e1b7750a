// The sizes of one sample of a convolution whose outputs are pooled in 2x2 windows.
#pragma once
#include <cstddef>
#include <strata/cpu/products/gemm.hpp>

namespace strata::simd {

/// The number of windows, and of those side by side in a row; the number of filters and of channels; and the elements of a row
/// of x. It is passed by value. Behind a reference it could alias the winners, which are bytes, so that the compiler would load
/// it again after each winner that is stored.
struct pooled_image {
  int windows, across, filters, channels;
  std::ptrdiff_t x_row;

  /// The upper left pixels of the windows in x.
  constexpr row_grid window_grid() const { return {2 * channels, across, 2 * x_row}; }
};

}  // namespace strata::simd
