// depthwise_conv2d<Kernel>: a two-dimensional convolution of each channel with filters of its own.
#pragma once
#include <array>
#include <strata/layers/conv2d.hpp>

namespace strata {

namespace reasons {
inline constexpr reason depthwise_conv2d_needs_positive_settings{
    "kernel size, stride, dilation and depth_multiplier must all be at least 1"};
}  // namespace reasons

namespace core {
struct depthwise_settings {
  using owns_depthwise_kernel = void;
  using takes_activation = void;
  int kernel_height, kernel_width;
  int stride_height = 1, stride_width = 1, dilation_height = 1, dilation_width = 1, depth_multiplier = 1;
  bool same = false, bias = true;

  /// The same as a convolution with a group for each channel: their kernels are the same elements in the same order.
  constexpr conv_settings on(shape in) const {
    return {.filters = in[2] * depth_multiplier,
            .kernel_height = kernel_height,
            .kernel_width = kernel_width,
            .stride_height = stride_height,
            .stride_width = stride_width,
            .dilation_height = dilation_height,
            .dilation_width = dilation_width,
            .groups = in[2],
            .same = same,
            .bias = bias};
  }
  constexpr shape kernel(shape in) const { return {kernel_height, kernel_width, in[2], depth_multiplier}; }
  constexpr expected_shape output_shape(shape in) const {
    if (depth_multiplier < 1 || kernel_height < 1 || kernel_width < 1 || stride_height < 1 || stride_width < 1 ||
        dilation_height < 1 || dilation_width < 1)
      return reasons::depthwise_conv2d_needs_positive_settings;
    return (in.rank() == 3 ? on(in) : conv_settings{1, 1, 1}).output_shape(in);
  }
};

/// The operation of depthwise_conv2d, and the first one of separable_conv2d. Kernels compute it as a convolution with groups.
/// in: (H, W, C)  out: ((H - KH) / stride + 1, (W - KW) / stride + 1, C * M); with same: (ceil(H / stride), ceil(W / stride),
/// C * M)   depthwise_kernel: (KH, KW, C, M)  bias: (C * M)
template <depthwise_settings S>
struct depthwise_convolution {
  static constexpr auto name = "depthwise_convolution";
  static constexpr operation_traits traits{.makes = value_range::real};
  template <shape In>
  using computed_as = convolution<S.on(In)>;

  static constexpr expected_shape output_shape(shape in) { return S.output_shape(in); }
  static constexpr auto parameters(shape in) {
    const parameter kernel{"depthwise_kernel", S.kernel(in), &info_of_initializer<glorot_uniform>};
    if constexpr (S.bias)
      return std::array{kernel, parameter{"bias", {in[2] * S.depth_multiplier}, &info_of_initializer<zeros>}};
    else
      return std::array{kernel};
  }
  static constexpr long multiply_adds(shape in) {
    const conv_settings s = S.on(in);
    return long(S.kernel(in).size()) * s.vertical(in).out() * s.horizontal(in).out();
  }
};
}  // namespace core

/// Filters of each channel: depthwise_conv2d<3, depth_multiplier<2>> makes twice as many channels.
template <int N>
struct depth_multiplier {
  static constexpr void configure(auto& settings)
    requires requires { settings.depth_multiplier; }
  {
    settings.depth_multiplier = N;
  }
};

namespace detail {
template <class Settings>
concept with_depthwise_kernel = requires { typename Settings::owns_depthwise_kernel; };
}  // namespace detail

template <class I>
struct depthwise_initializer : detail::initializer_option<I> {
  static constexpr void configure(detail::with_depthwise_kernel auto&) {}
  static constexpr void adjust(core::parameter& p) { detail::start_with<I>(p, "depthwise_kernel"); }
};
template <class Penalty>
struct depthwise_regularizer : detail::penalty_option<Penalty> {
  static constexpr void configure(detail::with_depthwise_kernel auto&) {}
  static constexpr void adjust(core::parameter& p) { detail::penalize<Penalty>(p, "depthwise_kernel"); }
};

/// in: (H, W, C)  out: ((H - K) / stride + 1, (W - K) / stride + 1, C * depth_multiplier)
/// Options: an activation, stride, dilation, depth_multiplier, same_padding, no_bias, kernel_size, depthwise_initializer,
/// depthwise_regularizer, those of the bias. https://keras.io/api/layers/convolution_layers/depthwise_convolution2d
template <int Kernel, class... Options>
struct depthwise_conv2d : core::layer_options<core::depthwise_settings, Options...> {
  static constexpr auto name = "depthwise_conv2d", class_name = "DepthwiseConv2D";
  using operations = detail::join_t<core::type_list<core::depthwise_convolution<depthwise_conv2d::configured(
                                        core::depthwise_settings{.kernel_height = Kernel, .kernel_width = Kernel})>>,
                                    typename depthwise_conv2d::activations>;
};

}  // namespace strata
