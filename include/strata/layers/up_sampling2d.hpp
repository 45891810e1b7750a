// up_sampling2d<Size>: an enlarged image.
#pragma once
#include <strata/layers/options.hpp>

namespace strata {

namespace reasons {
inline constexpr reason up_sampling2d_takes_height_width_channels{
    "up_sampling2d takes (height, width, channels): put it before flatten, or reshape<H, W, C> first"};
inline constexpr reason up_sampling2d_size_must_be_at_least_1{"the size of up_sampling2d must be at least 1"};
}  // namespace reasons

namespace core {
struct up_sampling_settings {
  int sampling_height, sampling_width;
  bool bilinear = false;

  constexpr expected_shape output_shape(shape in) const {
    if (sampling_height < 1 || sampling_width < 1) return reasons::up_sampling2d_size_must_be_at_least_1;
    if (in.rank() != 3) return reasons::up_sampling2d_takes_height_width_channels;
    return shape{in[0] * sampling_height, in[1] * sampling_width, in[2]};
  }
};
}  // namespace core

namespace detail {
/// Pixel `to` of an axis that is enlarged `size` times is (1 - weight) * pixel[low] + weight * pixel[high].
struct blended_pixel {
  int low, high;
  double weight;

  /// The input pixel that contains output pixel `to`.
  static constexpr blended_pixel nearest(int to, int size) { return {to / size, to / size, 0}; }
  /// The two input pixels whose centres enclose its centre; beyond the outermost centres, the outermost pixel.
  static constexpr blended_pixel bilinear(int to, int size, int pixels) {
    const int steps = 2 * to + 1 - size, low = steps < 0 ? -1 : steps / (2 * size);  // in units of half an output pixel
    return {low < 0 ? 0 : low, low + 1 < pixels ? low + 1 : low, double(steps - low * 2 * size) / (2 * size)};
  }
};
}  // namespace detail

namespace core {
/// Repeats each pixel `height` times down and `width` times across, or interpolates as a bilinear tf.image.resize does.
/// in: (H, W, C)  out: (height * H, width * W, C)
template <up_sampling_settings S>
struct up_sampling {
  static constexpr auto name = "up_sampling";
  static constexpr operation_traits traits{.makes = value_range::those_of_its_input};

  static constexpr expected_shape output_shape(shape in) { return S.output_shape(in); }
  static constexpr detail::blended_pixel row(shape in, int to) {
    return S.bilinear ? detail::blended_pixel::bilinear(to, S.sampling_height, in[0])
                      : detail::blended_pixel::nearest(to, S.sampling_height);
  }
  static constexpr detail::blended_pixel column(shape in, int to) {
    return S.bilinear ? detail::blended_pixel::bilinear(to, S.sampling_width, in[1])
                      : detail::blended_pixel::nearest(to, S.sampling_width);
  }
};
}  // namespace core

/// Sizes that differ: up_sampling2d<2, sampling_size<2, 3>>.
template <int Vertical, int Horizontal>
struct sampling_size {
  static constexpr void configure(auto& settings)
    requires requires { settings.sampling_height; }
  {
    settings.sampling_height = Vertical, settings.sampling_width = Horizontal;
  }
};

/// Interpolates between the centres of pixels, instead of repeating pixels.
struct bilinear_interpolation {
  static constexpr void configure(auto& settings)
    requires requires { settings.bilinear; }
  {
    settings.bilinear = true;
  }
};

/// in: (H, W, C)  out: (Size * H, Size * W, C).  Options: bilinear_interpolation, sampling_size.
/// https://keras.io/api/layers/reshaping_layers/up_sampling2d
template <int Size = 2, class... Options>
struct up_sampling2d : core::layer_options<core::up_sampling_settings, Options...> {
  static constexpr auto name = "up_sampling2d", class_name = "UpSampling2D";
  using operations = core::type_list<
      core::up_sampling<up_sampling2d::configured(core::up_sampling_settings{.sampling_height = Size, .sampling_width = Size})>>;
};

}  // namespace strata
