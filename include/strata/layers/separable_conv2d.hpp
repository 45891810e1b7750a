// separable_conv2d<Filters, Kernel>: a depthwise convolution, and one with a kernel of one pixel that mixes its channels.
#pragma once
#include <array>
#include <strata/layers/depthwise_conv2d.hpp>

namespace strata {

namespace core {
struct pointwise_settings {
  int filters;
  bool bias = true;
};

/// The second operation of separable_conv2d: a convolution whose kernel is one pixel. Kernels compute it as that.
/// in: (H, W, C)  out: (H, W, F)   pointwise_kernel: (1, 1, C, F)  bias: (F)
template <pointwise_settings S>
struct pointwise_convolution {
  static constexpr auto name = "pointwise_convolution";
  static constexpr operation_traits traits{.makes = value_range::real};
  using same = convolution<conv_settings{.filters = S.filters, .kernel_height = 1, .kernel_width = 1, .bias = S.bias}>;
  template <shape>
  using computed_as = same;

  static constexpr expected_shape output_shape(shape in) { return same::output_shape(in); }
  static constexpr auto parameters(shape in) {
    auto owned = same::parameters(in);
    owned[0].name = "pointwise_kernel";
    return owned;
  }
  static constexpr long multiply_adds(shape in) { return same::multiply_adds(in); }
};

struct separable_settings {
  using owns_depthwise_kernel = void;
  using owns_pointwise_kernel = void;
  using takes_activation = void;
  int filters, kernel_height, kernel_width;
  int stride_height = 1, stride_width = 1, dilation_height = 1, dilation_width = 1, depth_multiplier = 1;
  bool same = false, bias = true;

  constexpr depthwise_settings depthwise() const {
    return {kernel_height,  kernel_width,     stride_height, stride_width, dilation_height,
            dilation_width, depth_multiplier, same,          false};
  }
  constexpr pointwise_settings pointwise() const { return {filters, bias}; }
};
}  // namespace core

namespace detail {
template <class Settings>
concept with_pointwise_kernel = requires { typename Settings::owns_pointwise_kernel; };
}  // namespace detail

template <class I>
struct pointwise_initializer : detail::initializer_option<I> {
  static constexpr void configure(detail::with_pointwise_kernel auto&) {}
  static constexpr void adjust(core::parameter& p) { detail::start_with<I>(p, "pointwise_kernel"); }
};
template <class Penalty>
struct pointwise_regularizer : detail::penalty_option<Penalty> {
  static constexpr void configure(detail::with_pointwise_kernel auto&) {}
  static constexpr void adjust(core::parameter& p) { detail::penalize<Penalty>(p, "pointwise_kernel"); }
};

/// in: (H, W, C)  out: ((H - K) / stride + 1, (W - K) / stride + 1, Filters)
/// Options: an activation, stride, dilation, depth_multiplier, same_padding, no_bias, kernel_size; initializers and regularizers
/// as depthwise_..., pointwise_... and bias_... https://keras.io/api/layers/convolution_layers/separable_convolution2d
template <int Filters, int Kernel, class... Options>
struct separable_conv2d : core::layer_options<core::separable_settings, Options...> {
  static constexpr auto name = "separable_conv2d", class_name = "SeparableConv2D";
  static constexpr core::separable_settings settings =
      separable_conv2d::configured(core::separable_settings{.filters = Filters, .kernel_height = Kernel, .kernel_width = Kernel});
  using operations = detail::join_t<
      core::type_list<core::depthwise_convolution<settings.depthwise()>, core::pointwise_convolution<settings.pointwise()>>,
      typename separable_conv2d::activations>;
};

}  // namespace strata
