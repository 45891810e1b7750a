// cropping2d<...>: an image without its outer rows and columns.
#pragma once
#include <strata/layers/zero_padding2d.hpp>

namespace strata {

namespace reasons {
inline constexpr reason cropping2d_takes_height_width_channels{"cropping2d takes (height, width, channels)"};
inline constexpr reason cropping2d_must_not_be_negative{"the numbers of cropping2d must be at least 0"};
inline constexpr reason cropping2d_must_leave_a_pixel{"cropping2d must leave at least one row and one column"};
inline constexpr reason cropping2d_takes_one_two_or_four_numbers{
    "cropping2d takes one number, or <vertical, horizontal>, or <top, bottom, left, right>"};
}  // namespace reasons

namespace core {
/// The shape of an image without so many rows and columns.
constexpr expected_shape cropped(shape in, const padding_settings& s) {
  if (s.has_negative()) return reasons::cropping2d_must_not_be_negative;
  if (in.rank() != 3) return reasons::cropping2d_takes_height_width_channels;
  if (s.top >= in[0] - s.bottom || s.left >= in[1] - s.right) return reasons::cropping2d_must_leave_a_pixel;
  return (-s).output_shape(in);
}

/// Kernels compute it as a padding with negative numbers.
/// in: (H, W, C)  out: (H - top - bottom, W - left - right, C)
template <padding_settings S>
struct cropping {
  static constexpr auto name = "cropping";
  template <shape>
  using computed_as = zero_padding<-S>;

  static constexpr expected_shape output_shape(shape in) { return cropped(in, S); }
};
}  // namespace core

/// in: (H, W, C)  out: (H - top - bottom, W - left - right, C).  cropping2d<1>, <vertical, horizontal> or <top, bottom, left,
/// right>. https://keras.io/api/layers/reshaping_layers/cropping2d
template <int... N>
struct cropping2d {
  static constexpr auto name = "cropping2d", class_name = "Cropping2D";
  using operations = core::type_list<
      typename detail::operation_of_sides<core::cropping, reasons::cropping2d_takes_one_two_or_four_numbers, N...>::type>;
};

}  // namespace strata
