// Images as a block of a convolution keeps them in shared memory: see image_product.hpp and image_gradient.hpp.
#pragma once
#include <algorithm>
#include <strata/cuda/kernels/sliding.hpp>

namespace strata::machine {

/// Large images as a block of to_small_images keeps them (image_product.hpp): with their padding.
template <class S>
struct view_of_large_images {
  using down = typename S::down;
  using across = typename S::across;
  static constexpr bool is_possible = true;
  static constexpr int channels = S::channels, step = across::stride;
  static constexpr int rows = (down::out - 1) * down::stride + (down::kernel - 1) * down::dilation + 1,
                       columns = (across::out - 1) * across::stride + (across::kernel - 1) * across::dilation + 1;
  static constexpr int first_row = down::padding, first_column = across::padding;
  static constexpr int inside_rows = std::min(down::in, rows - first_row),
                       inside_columns = std::min(across::in, columns - first_column);
  static constexpr int place(typename S::small_pixel at) { return at.row * down::stride * columns + at.column * across::stride; }
  static constexpr int offset(int tap) {
    return quotient<across::kernel>(tap) * down::dilation * columns + remainder<across::kernel>(tap) * across::dilation;
  }
  static constexpr bool has_runs = across::dilation == 1;
  static constexpr int window_rows = down::kernel, window_columns = across::kernel, row_step = down::dilation * columns;
  template <class From>
  STRATA_DEVICE static auto pixel_four(const From& from, int image, int row, int column, int channel) {
    return four_or_zeros<channels>(from, typename S::large_pixel{image, row, column}, true, channel);
  }
  template <class From>
  static constexpr auto element(const From& from, int image, int row, int i) {
    const typename S::large_pixel at{image, row - first_row, quotient<channels>(i) - first_column};
    return element_or_zero<channels>(from, at, S::is_inside(at), remainder<channels>(i));
  }
};
/// Small images as a block of to_large_images keeps them (image_product.hpp): with zeros around them. Needs strides of 1.
template <class S>
struct view_of_small_images {
  using down = typename S::down;
  using across = typename S::across;
  static constexpr bool is_possible = down::stride == 1 && across::stride == 1, has_runs = false;
  static constexpr int channels = S::filters, step = 1;
  static constexpr int after_row = (down::kernel - 1) * down::dilation, after_column = (across::kernel - 1) * across::dilation;
  static constexpr int rows = down::in + after_row, columns = across::in + after_column;
  static constexpr int first_row = after_row - down::padding, first_column = after_column - across::padding;
  static constexpr int inside_rows = down::out, inside_columns = across::out;
  static constexpr int place(typename S::large_pixel at) { return at.row * columns + at.column; }
  static constexpr int offset(int tap) {
    return (after_row - quotient<across::kernel>(tap) * down::dilation) * columns + after_column -
           remainder<across::kernel>(tap) * across::dilation;
  }
  template <class From>
  STRATA_DEVICE static auto pixel_four(const From& from, int image, int row, int column, int channel) {
    return four_or_zeros<channels>(from, typename S::small_pixel{image, row, column}, true, channel);
  }
};

}  // namespace strata::machine
