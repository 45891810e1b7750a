// Windows that slide over images, and the pixels under them.
#pragma once
#include <algorithm>
#include <limits>
#include <strata/cuda/kernels/constant_axis.hpp>
#include <strata/cuda/kernels/gradients.hpp>
#include <strata/cuda/machine/product_terms.hpp>

namespace strata::machine {

/// A pixel of some images of Rows x Columns pixels.
template <int Rows, int Columns>
struct pixel {
  int image, row, column;

  /// Pixel number n of all images.
  static constexpr pixel number(int n) {
    const int in_image = remainder<Rows * Columns>(n);
    return {quotient<Rows * Columns>(n), quotient<Columns>(in_image), remainder<Columns>(in_image)};
  }
  constexpr int number() const { return image * (Rows * Columns) + row * Columns + column; }
  /// As an unsigned number, a negative one is larger than any index.
  constexpr bool is_inside() const { return unsigned(row) < unsigned(Rows) && unsigned(column) < unsigned(Columns); }
};

/// An element of images with `Channels` channels, or 0 for a pixel that is not inside. `from` is an array, or has a function
/// at(pixel, is_inside, channel). An array is read in any case: without a branch around it, a thread need not wait for one load
/// before it issues the next.
template <int Channels, class From, class Pixel>
constexpr auto element_or_zero(const From& from, Pixel at, bool is_inside, int channel) {
  if constexpr (requires { from.at(at, is_inside, channel); }) {
    return from.at(at, is_inside, channel);
  } else {
    const auto element = from[long{is_inside ? at.number() : 0} * Channels + channel];
    return is_inside ? element : decltype(element){};
  }
}
template <int Channels, class From, class Pixel>
constexpr auto element_of(const From& from, Pixel at, int channel) {
  return element_or_zero<Channels>(from, at, true, channel);
}
/// element_or_zero for the channels `channel` to channel + 3, where `channel` and Channels are multiples of 4.
template <int Channels, class From, class Pixel>
STRATA_DEVICE auto four_or_zeros(const From& from, Pixel at, bool is_inside, int channel) {
  if constexpr (requires { from.four_at(at, is_inside, channel); }) {
    return from.four_at(at, is_inside, channel);
  } else {
    const auto all = four_at(from, long{is_inside ? at.number() : 0} * Channels + channel);
    return is_inside ? all : decltype(all){};
  }
}

/// How a window slides over a large image (H, W, C) and makes a small one (OH, OW, F). A convolution goes from the large to the
/// small image, a transposed one back. The kernel is (KH, KW, C / groups, F).
template <window_axis Vertical, window_axis Horizontal, int C, int F, int Groups>
struct sliding {
  using down = constant_axis<Vertical>;
  using across = constant_axis<Horizontal>;
  static constexpr int channels = C, filters = F, groups = Groups, group_channels = C / Groups, group_filters = F / Groups;
  static constexpr int taps = down::kernel * across::kernel;
  static constexpr int large_pixels = down::in * across::in, small_pixels = down::out * across::out;

  /// The number of pixels of `count` images. Throws strata_error if it exceeds the indices of a kernel, which are int.
  static int pixels(long count, int of_an_image) {
    if (count * std::max(large_pixels, small_pixels) > std::numeric_limits<int>::max())
      throw_error({"CUDA: the images of ", count, " samples have too many pixels for a kernel; a smaller batch has fewer"});
    return int(count) * of_an_image;
  }

  using large_pixel = pixel<down::in, across::in>;
  using small_pixel = pixel<down::out, across::out>;

  /// The pixel of the large images under a tap of the window at a pixel of the small images. In the padding it is not inside.
  static constexpr large_pixel under(small_pixel at, int tap) {
    return {at.image, down::begin(at.row) + quotient<across::kernel>(tap) * down::dilation,
            across::begin(at.column) + remainder<across::kernel>(tap) * across::dilation};
  }
  static constexpr bool is_inside(large_pixel at) { return (down::stays_inside && across::stays_inside) || at.is_inside(); }
  /// The pixel of the small images whose window has that tap over a pixel of the large images, if there is one.
  struct window_over {
    small_pixel at;
    bool exists;
  };
  static constexpr window_over over(large_pixel at, int tap) {
    const int row = at.row - quotient<across::kernel>(tap) * down::dilation + down::padding;
    const int column = at.column - remainder<across::kernel>(tap) * across::dilation + across::padding;
    const small_pixel small{at.image, row / down::stride, column / across::stride};
    const bool is_first = (down::stride == 1 || (row >= 0 && row % down::stride == 0)) &&
                          (across::stride == 1 || (column >= 0 && column % across::stride == 0));
    return {small, is_first && small.is_inside()};
  }
};

}  // namespace strata::machine
