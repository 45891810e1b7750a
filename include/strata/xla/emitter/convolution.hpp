// Convolutions, transposed ones too: each is one of three products, and the two others are its gradients.
#pragma once
#include <strata/layers/conv2d.hpp>
#include <strata/layers/conv2d_transpose.hpp>
#include <strata/layers/depthwise_conv2d.hpp>
#include <strata/layers/separable_conv2d.hpp>
#include <strata/xla/emitter/emission.hpp>

namespace strata::stablehlo {

namespace detail {
/// A convolution of images (rows, H, W, C) with a kernel (KH, KW, C / groups, F).
class image_convolution {
  window_axis axes_[2];
  std::int64_t groups_;

 public:
  image_convolution(window_axis vertical, window_axis horizontal, int groups) : axes_{vertical, horizontal}, groups_(groups) {}

  tensor forward(const operation_call& c, tensor x, tensor kernel) const;
  /// The gradient of the images, whose extents are `to`.
  tensor input_gradient(const operation_call& c, tensor dy, tensor kernel, const extents& to) const;
  tensor kernel_gradient(const operation_call& c, tensor x, tensor dy, const extents& to) const;

 private:
  /// True if each channel has one filter of its own, and the platform computes that element-wise (depthwise_by_element).
  bool is_by_element(const operation_call& c, const extents& kernel) const;
  /// For each weight of a filter, the elements of the images by which it is multiplied: (rows, H', W', C).
  std::vector<tensor> taps(tensor x) const;
  tensor input_gradient_by_element(const operation_call& c, tensor dy, tensor kernel) const;
  tensor kernel_gradient_by_element(const operation_call& c, tensor x, tensor dy, const extents& to) const;
  /// The kernel gradient as one product of all patches, (rows, H', W', KH KW C), with dy. Only without groups.
  tensor kernel_gradient_of_patches(const operation_call& c, tensor x, tensor dy, const extents& to) const;
};

/// The kernel as convolutions have it is (KH, KW, C / groups, F), also where the parameter has another shape.
tensor convolution_forward(operation_call& c, const image_convolution& of, tensor kernel);
void convolution_backward(operation_call& c, const image_convolution& of, tensor kernel);
tensor transposed_forward(operation_call& c, const image_convolution& backwards);
void transposed_backward(operation_call& c, const image_convolution& backwards);

constexpr shape shape_of_sample(const extents& x) { return {int(x[1]), int(x[2]), int(x[3])}; }
}  // namespace detail

/// kernel: (KH, KW, C / groups, F); bias: (F), if there is one.
template <conv_settings S>
struct emission<convolution<S>> {
  static tensor forward(operation_call& c) { return detail::convolution_forward(c, of(c), c.w[0]); }
  static void backward(operation_call& c) { detail::convolution_backward(c, of(c), c.w[0]); }

 private:
  static detail::image_convolution of(const operation_call& c) {
    const shape in = detail::shape_of_sample(c.x[0].extents());
    return {convolution<S>::vertical(in), convolution<S>::horizontal(in), S.groups};
  }
};

/// depthwise_kernel: (KH, KW, C, M); bias: (C * M), if there is one.
template <depthwise_settings S>
struct emission<depthwise_convolution<S>> {
  static tensor forward(operation_call& c) { return detail::convolution_forward(c, of(c), kernel(c)); }
  static void backward(operation_call& c) { detail::convolution_backward(c, of(c), kernel(c)); }

 private:
  static detail::image_convolution of(const operation_call& c) {
    const shape in = detail::shape_of_sample(c.x[0].extents());
    const conv_settings s = S.on(in);
    return {s.vertical(in), s.horizontal(in), s.groups};
  }
  static tensor kernel(const operation_call& c) {
    const extents& e = c.w[0].extents();
    return reshape(c.w[0], {e[0], e[1], 1, e[2] * e[3]});
  }
};
template <pointwise_settings S>
struct emission<pointwise_convolution<S>> : emission<typename pointwise_convolution<S>::same> {};

/// kernel: (KH, KW, F, C); bias: (F), if there is one.
template <transposed_conv_settings S>
struct emission<transposed_convolution<S>> {
  static tensor forward(operation_call& c) { return detail::transposed_forward(c, backwards(c)); }
  static void backward(operation_call& c) { detail::transposed_backward(c, backwards(c)); }

 private:
  /// The convolution from the output to the input.
  static detail::image_convolution backwards(const operation_call& c) {
    constexpr transposed_conv_settings s = S;
    const shape out = detail::shape_of_sample(c.out);
    return {{out[0], s.kernel_height, s.stride_height, s.dilation_height, s.same},
            {out[1], s.kernel_width, s.stride_width, s.dilation_width, s.same},
            1};
  }
};

}  // namespace strata::stablehlo

#if STRATA_DEFINES
#include <strata/xla/emitter/convolution.ipp>
#endif
