// Definitions of convolution.hpp.
#pragma once
#include <algorithm>

namespace strata::stablehlo::detail {

STRATA_FUNCTION tensor image_convolution::forward(const operation_call& c, tensor x, tensor kernel) const {
  window_2d w;
  extents to{x.extent(0), 0, 0, kernel.extent(3)};
  for (std::size_t i = 0; i < 2; ++i) {
    const window_axis& a = axes_[i];
    to[i + 1] = a.out();
    w.stride[i] = a.stride, w.window_dilation[i] = a.dilation, w.low[i] = a.padding();
    w.high[i] = a.same ? std::max(0, (a.out() - 1) * a.stride + a.reach() - a.in) - a.padding() : 0;
  }
  return convolve(c.factor(x), c.factor(kernel), "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]", w, groups_, 1, to, c.step.number,
                  c.precision());
}

STRATA_FUNCTION tensor image_convolution::input_gradient(const operation_call& c, tensor dy, tensor kernel,
                                                         const extents& to) const {
  window_2d w;
  for (std::size_t i = 0; i < 2; ++i) {
    const window_axis& a = axes_[i];
    w.input_dilation[i] = a.stride, w.window_dilation[i] = a.dilation, w.low[i] = a.reach() - 1 - a.padding();
    w.high[i] = a.in - 1 - (a.out() - 1) * a.stride + a.padding();
  }
  // Input and output channels of each group change places.
  const std::int64_t height = kernel.extent(0), width = kernel.extent(1), in = kernel.extent(2), out = kernel.extent(3) / groups_;
  const tensor grouped = transpose(reshape(kernel, {height, width, in, groups_, out}), {0, 1, 4, 3, 2});
  const tensor turned = reverse(reshape(grouped, {height, width, out, groups_ * in}), {0, 1});
  return convolve(c.factor(dy), c.factor(turned), "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]", w, groups_, 1, to, c.step.number,
                  c.precision());
}

STRATA_FUNCTION tensor image_convolution::kernel_gradient(const operation_call& c, tensor x, tensor dy, const extents& to) const {
  if (groups_ == 1 && x.extent(3) < c.step.platform.channels_of_convolved_images) return kernel_gradient_of_patches(c, x, dy, to);
  window_2d w;
  for (std::size_t i = 0; i < 2; ++i) {
    const window_axis& a = axes_[i];
    w.stride[i] = a.dilation, w.window_dilation[i] = a.stride, w.low[i] = a.padding();
    w.high[i] = a.reach() + (a.out() - 1) * a.stride - a.in - a.padding();
  }
  return convolve(c.factor(x), c.factor(dy), "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", w, 1, groups_, to, c.step.number,
                  c.precision());
}

STRATA_FUNCTION tensor image_convolution::kernel_gradient_of_patches(const operation_call& c, tensor x, tensor dy,
                                                                     const extents& to) const {
  const window_axis &down = axes_[0], &across = axes_[1];
  const auto beyond = [](const window_axis& a) { return std::max(0, (a.out() - 1) * a.stride + a.reach() - a.in - a.padding()); };
  const tensor image =
      pad(c.factor(x), {0, down.padding(), across.padding(), 0}, {0, beyond(down), beyond(across), 0}, {0, 0, 0, 0});
  std::vector<tensor> taps;
  for (int i = 0; i < down.kernel; ++i)
    for (int k = 0; k < across.kernel; ++k) {
      const std::int64_t top = i * down.dilation, left = k * across.dilation;
      const std::int64_t bottom = top + (down.out() - 1) * down.stride + 1, right = left + (across.out() - 1) * across.stride + 1;
      taps.push_back(
          slice(image, {0, top, left, 0}, {x.extent(0), bottom, right, x.extent(3)}, {1, down.stride, across.stride, 1}));
    }
  const std::int64_t places = x.extent(0) * down.out() * across.out();
  const tensor patches = reshape(concatenate(taps, 3), {places, to[0] * to[1] * to[2]});
  return reshape(dot_general(patches, reshape(c.factor(dy), {places, to[3]}), 0, 0, c.step.number, c.precision()), to);
}

STRATA_FUNCTION tensor convolution_forward(operation_call& c, const image_convolution& of) {
  const tensor y = of.forward(c, c.x[0], c.w[0]);
  return c.w.size() > 1 ? y + along_last_axis(c.w[1], y) : y;
}
STRATA_FUNCTION void convolution_backward(operation_call& c, const image_convolution& of) {
  if (c.wants_dx[0]) c.set_dx(of.input_gradient(c, c.dy, c.w[0], c.x[0].extents()));
  if (c.wants_dw[0]) c.dw[0] = of.kernel_gradient(c, c.x[0], c.dy, c.w[0].extents());
  if (c.w.size() > 1 && c.wants_dw[1]) c.dw[1] = sum_per_channel(c.dy);
}

STRATA_FUNCTION tensor transposed_forward(operation_call& c, const image_convolution& backwards) {
  const tensor y = backwards.input_gradient(c, c.x[0], c.w[0], c.out);
  return c.w.size() > 1 ? y + along_last_axis(c.w[1], y) : y;
}
STRATA_FUNCTION void transposed_backward(operation_call& c, const image_convolution& backwards) {
  if (c.wants_dx[0]) c.set_dx(backwards.forward(c, c.dy, c.w[0]));
  if (c.wants_dw[0]) c.dw[0] = backwards.kernel_gradient(c, c.dy, c.x[0], c.w[0].extents());
  if (c.w.size() > 1 && c.wants_dw[1]) c.dw[1] = sum_per_channel(c.dy);
}

}  // namespace strata::stablehlo::detail
