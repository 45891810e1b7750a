// conv2d<Filters, Kernel>: a two-dimensional convolution.
#pragma once
#include <array>
#include <strata/initializers/constant.hpp>
#include <strata/initializers/glorot.hpp>
#include <strata/layers/activations.hpp>
#include <strata/layers/options.hpp>
#include <strata/layers/window.hpp>

namespace strata {

namespace reasons {
inline constexpr reason conv2d_takes_height_width_channels{
    "conv2d takes (height, width, channels): put input<H, W, C> or reshape<H, W, C> first"};
inline constexpr reason conv2d_takes_height_width_channels_write_input_with_a_last_extent_of_1{
    "conv2d takes (height, width, channels): a grey image is input<H, W, 1>, or put reshape<H, W, 1> first"};
inline constexpr reason conv2d_kernel_is_larger_than_the_image_channels_come_last{
    "the image is smaller than the kernel: channels come last, input<28, 28, 1>"};
inline constexpr reason conv2d_kernel_is_larger_than_the_image_use_same_padding{
    "the image is smaller than the kernel: use same_padding or less pooling"};
inline constexpr reason conv2d_groups_must_divide_channels_and_filters{
    "groups must divide both the input's channels and the filters"};
inline constexpr reason conv2d_needs_positive_settings{
    "filters, kernel size, stride, dilation and groups must all be at least 1"};
inline constexpr reason conv2d_takes_stride_or_dilation_not_both{"stride and dilation cannot both exceed 1 (as in Keras)"};
}  // namespace reasons

namespace core {
struct conv_settings {
  using owns_kernel = void;
  using takes_activation = void;
  int filters, kernel_height, kernel_width;
  int stride_height = 1, stride_width = 1, dilation_height = 1, dilation_width = 1, groups = 1;
  bool same = false, bias = true;

  constexpr window_axis vertical(shape in) const { return {in[0], kernel_height, stride_height, dilation_height, same}; }
  constexpr window_axis horizontal(shape in) const { return {in[1], kernel_width, stride_width, dilation_width, same}; }
  constexpr shape kernel(shape in) const { return {kernel_height, kernel_width, in[2] / (groups < 1 ? 1 : groups), filters}; }
  constexpr expected_shape output_shape(shape in) const {
    if (filters < 1 || kernel_height < 1 || kernel_width < 1 || stride_height < 1 || stride_width < 1 || dilation_height < 1 ||
        dilation_width < 1 || groups < 1)
      return reasons::conv2d_needs_positive_settings;
    if ((stride_height > 1 || stride_width > 1) && (dilation_height > 1 || dilation_width > 1))
      return reasons::conv2d_takes_stride_or_dilation_not_both;
    if (in.rank() == 2) return reasons::conv2d_takes_height_width_channels_write_input_with_a_last_extent_of_1;
    if (in.rank() != 3) return reasons::conv2d_takes_height_width_channels;
    if (in[2] % groups != 0 || filters % groups != 0) return reasons::conv2d_groups_must_divide_channels_and_filters;
    if (!vertical(in).fits() || !horizontal(in).fits())
      return in[0] <= 4 && in[1] == in[2] && in[1] > 4 ? reasons::conv2d_kernel_is_larger_than_the_image_channels_come_last
                                                       : reasons::conv2d_kernel_is_larger_than_the_image_use_same_padding;
    return shape{vertical(in).out(), horizontal(in).out(), filters};
  }
};

/// The operation of conv2d. It is keyed by settings, so that layers with the same options in another order share one type.
/// in: (H, W, C)  out: ((H - KH) / stride + 1, (W - KW) / stride + 1, F); with same: (ceil(H / stride), ceil(W / stride), F)
/// kernel: (KH, KW, C / groups, F)  bias: (F)
template <conv_settings S>
struct convolution {
  static constexpr auto name = "convolution";
  static constexpr operation_traits traits{.makes = value_range::real};

  static constexpr window_axis vertical(shape in) { return S.vertical(in); }
  static constexpr window_axis horizontal(shape in) { return S.horizontal(in); }
  static constexpr expected_shape output_shape(shape in) { return S.output_shape(in); }
  static constexpr auto parameters(shape in) {
    const parameter kernel{"kernel", S.kernel(in), &info_of_initializer<glorot_uniform>};
    if constexpr (S.bias)
      return std::array{kernel, parameter{"bias", {S.filters}, &info_of_initializer<zeros>}};
    else
      return std::array{kernel};
  }
  static constexpr long multiply_adds(shape in) {
    return long(parameters(in)[0].extents.size()) * vertical(in).out() * horizontal(in).out();
  }
};
}  // namespace core

/// Height and width of a kernel that is not square: conv2d<64, 3, kernel_size<3, 5>>.
template <int Height, int Width>
struct kernel_size {
  static constexpr void configure(auto& settings)
    requires requires { settings.kernel_height; }
  {
    settings.kernel_height = Height, settings.kernel_width = Width;
  }
};

/// in: (H, W, C)  out: ((H - K) / stride + 1, (W - K) / stride + 1, Filters)
/// Options: an activation, stride, dilation, groups, same_padding, no_bias, kernel_size, initializers, regularizers.
/// https://keras.io/api/layers/convolution_layers/convolution2d
template <int Filters, int Kernel, class... Options>
struct conv2d : core::layer_options<core::conv_settings, Options...> {
  static constexpr auto name = "conv2d", class_name = "Conv2D";
  using operations = detail::join_t<core::type_list<core::convolution<conv2d::configured(core::conv_settings{
                                        .filters = Filters, .kernel_height = Kernel, .kernel_width = Kernel})>>,
                                    typename conv2d::activations>;
};

}  // namespace strata
