// global_average_pool2d, global_max_pool2d: one number per channel of an image.
#pragma once
#include <strata/layers/pooling.hpp>

namespace strata {

namespace detail {
constexpr expected_shape channels_of_image(shape in) {
  if (in.rank() != 3) return reasons::pooling_takes_height_width_channels;
  return shape{in[2]};
}
}  // namespace detail

/// The mean of each channel.  in: (H, W, C)  out: (C)   https://keras.io/api/layers/pooling_layers/global_average_pooling2d
struct global_average_pool2d {
  static constexpr auto name = "global_average_pooling2d", class_name = "GlobalAveragePooling2D";
  static constexpr core::operation_traits traits{.makes = core::value_range::those_of_its_input};
  static constexpr core::expected_shape output_shape(shape in) { return detail::channels_of_image(in); }
};

/// The largest element of each channel; the gradient of equal elements goes to the first.  in: (H, W, C)  out: (C)
/// https://keras.io/api/layers/pooling_layers/global_max_pooling2d
struct global_max_pool2d {
  static constexpr auto name = "global_max_pooling2d", class_name = "GlobalMaxPooling2D";
  static constexpr core::operation_traits traits{.makes = core::value_range::those_of_its_input};
  static constexpr core::expected_shape output_shape(shape in) { return detail::channels_of_image(in); }
};

}  // namespace strata
