// The sizes of one sample of a convolution whose outputs are pooled in 2x2 windows.
#pragma once
#include <cstddef>
#include <strata/cpu/products/gemm.hpp>

namespace strata::simd {

/// The number of windows, and of windows in a row; the number of filters and of channels; and the elements of a row of x. Passed
/// by value: behind a reference it could alias the winners, which are bytes, and the compiler would reload it after each store of
/// a winner.
struct pooled_image {
  int windows, across, filters, channels;
  std::ptrdiff_t x_row;

  /// The upper left pixels of the windows in x.
  constexpr row_grid window_grid() const { return {2 * channels, across, 2 * x_row}; }
};

}  // namespace strata::simd
