// conv2d_transpose<Filters, Kernel>: a convolution that enlarges an image.
#pragma once
#include <array>
#include <strata/initializers/constant.hpp>
#include <strata/initializers/glorot.hpp>
#include <strata/layers/activations.hpp>
#include <strata/layers/conv2d.hpp>
#include <strata/layers/options.hpp>
#include <strata/layers/window.hpp>

namespace strata {

namespace reasons {
inline constexpr reason conv2d_transpose_takes_height_width_channels{
    "conv2d_transpose takes (height, width, channels): put reshape<H, W, C> first"};
inline constexpr reason conv2d_transpose_needs_positive_settings{
    "filters, kernel size, stride and dilation of conv2d_transpose must all be at least 1"};
inline constexpr reason conv2d_transpose_takes_stride_or_dilation_not_both{
    "stride and dilation of conv2d_transpose cannot both exceed 1 (as in Keras)"};
}  // namespace reasons

namespace core {
struct transposed_conv_settings {
  using owns_kernel = void;
  using takes_activation = void;
  int filters, kernel_height, kernel_width;
  int stride_height = 1, stride_width = 1, dilation_height = 1, dilation_width = 1;
  bool same = false, bias = true;

  static constexpr int enlarged(int in, int kernel, int stride, int dilation, bool same) {
    const int reach = (kernel - 1) * dilation + 1;
    return same ? in * stride : (in - 1) * stride + (reach > stride ? reach : stride);
  }
  /// (height, width, filters) of the output.
  constexpr shape output(shape in) const {
    return {enlarged(in[0], kernel_height, stride_height, dilation_height, same),
            enlarged(in[1], kernel_width, stride_width, dilation_width, same), filters};
  }
  /// The convolution from the output to the input: the layer computes its input gradient, with the same kernel.
  constexpr conv_settings backwards(shape in) const {
    return {in[2], kernel_height, kernel_width, stride_height, stride_width, dilation_height, dilation_width, 1, same, false};
  }
  constexpr shape kernel(shape in) const { return {kernel_height, kernel_width, filters, in[2]}; }
  constexpr expected_shape output_shape(shape in) const {
    if (filters < 1 || kernel_height < 1 || kernel_width < 1 || stride_height < 1 || stride_width < 1 || dilation_height < 1 ||
        dilation_width < 1)
      return reasons::conv2d_transpose_needs_positive_settings;
    if ((stride_height > 1 || stride_width > 1) && (dilation_height > 1 || dilation_width > 1))
      return reasons::conv2d_transpose_takes_stride_or_dilation_not_both;
    if (in.rank() != 3) return reasons::conv2d_transpose_takes_height_width_channels;
    return output(in);
  }
};

/// The operation of conv2d_transpose: the transpose, or input gradient, of a convolution.
/// in: (H, W, C)  out: ((H - 1) * stride + max(reach, stride), likewise for W, F), where reach = (K - 1) * dilation + 1; with
/// same: (H * stride, W * stride, F)   kernel: (KH, KW, F, C)  bias: (F)
template <transposed_conv_settings S>
struct transposed_convolution {
  static constexpr auto name = "transposed_convolution";
  static constexpr operation_traits traits{.makes = value_range::real};

  static constexpr expected_shape output_shape(shape in) { return S.output_shape(in); }
  static constexpr auto parameters(shape in) {
    const parameter kernel{"kernel", S.kernel(in), &info_of_initializer<glorot_uniform>};
    if constexpr (S.bias)
      return std::array{kernel, parameter{"bias", {S.filters}, &info_of_initializer<zeros>}};
    else
      return std::array{kernel};
  }
  static constexpr long multiply_adds(shape in) { return long(parameters(in)[0].extents.size()) * in[0] * in[1]; }
};
}  // namespace core

/// in: (H, W, C)  out: ((H - 1) * stride + max(reach, stride), likewise for W, Filters), where reach = (K - 1) * dilation + 1;
/// with same_padding: (H * stride, W * stride, Filters).  Options: those of conv2d without groups. Keras' output_padding is its
/// default. https://keras.io/api/layers/convolution_layers/convolution2d_transpose
template <int Filters, int Kernel, class... Options>
struct conv2d_transpose : core::layer_options<core::transposed_conv_settings, Options...> {
  static constexpr auto name = "conv2d_transpose", class_name = "Conv2DTranspose";
  using operations =
      detail::join_t<core::type_list<core::transposed_convolution<conv2d_transpose::configured(
                         core::transposed_conv_settings{.filters = Filters, .kernel_height = Kernel, .kernel_width = Kernel})>>,
                     typename conv2d_transpose::activations>;
};

}  // namespace strata
