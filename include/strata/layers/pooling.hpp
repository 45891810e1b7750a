// Settings of pooling layers.
#pragma once
#include <strata/layers/options.hpp>
#include <strata/layers/window.hpp>

namespace strata {

namespace reasons {
inline constexpr reason pooling_takes_height_width_channels{"pooling takes (height, width, channels): pool before flatten"};
inline constexpr reason pooling_window_is_larger_than_the_image_pool_less_often{
    "the image is smaller than the pooling window: pool less often, or use same_padding"};
inline constexpr reason pooling_needs_positive_settings{"the window and its stride must be at least 1"};
}  // namespace reasons

namespace core {
/// A stride of 0 is the size of the window.
struct pool_settings {
  int window_height, window_width;
  int stride_height = 0, stride_width = 0;
  bool same = false;

  constexpr window_axis vertical(shape in) const {
    return {in[0], window_height, stride_height == 0 ? window_height : stride_height, 1, same};
  }
  constexpr window_axis horizontal(shape in) const {
    return {in[1], window_width, stride_width == 0 ? window_width : stride_width, 1, same};
  }
  constexpr expected_shape output_shape(shape in) const {
    if (window_height < 1 || window_width < 1 || stride_height < 0 || stride_width < 0)
      return reasons::pooling_needs_positive_settings;
    if (in.rank() != 3) return reasons::pooling_takes_height_width_channels;
    if (!vertical(in).fits() || !horizontal(in).fits()) return reasons::pooling_window_is_larger_than_the_image_pool_less_often;
    return shape{vertical(in).out(), horizontal(in).out(), in[2]};
  }
};
}  // namespace core

/// Height and width of a window that is not square: max_pool2d<2, pool_size<2, 3>>.
template <int Height, int Width>
struct pool_size {
  static constexpr void configure(auto& settings)
    requires requires { settings.window_height; }
  {
    settings.window_height = Height, settings.window_width = Width;
  }
};

}  // namespace strata
