// Definitions of convolution.hpp.
#pragma once
#include <algorithm>

namespace strata::stablehlo::detail {

/// The elements at each place of a window, every `steps[i]`-th: `counts[i]` along axis i.
STRATA_FUNCTION std::vector<tensor> window_elements(tensor image, const window_axis (&axes)[2], const std::int64_t (&counts)[2],
                                                    const std::int64_t (&steps)[2]) {
  std::vector<tensor> out;
  for (int i = 0; i < axes[0].kernel; ++i)
    for (int k = 0; k < axes[1].kernel; ++k) {
      const std::int64_t top = i * axes[0].dilation, left = k * axes[1].dilation;
      const std::int64_t bottom = top + (counts[0] - 1) * steps[0] + 1, right = left + (counts[1] - 1) * steps[1] + 1;
      out.push_back(
          slice(image, {0, top, left, 0}, {image.extent(0), bottom, right, image.extent(3)}, {1, steps[0], steps[1], 1}));
    }
  return out;
}
/// kernel: (KH, KW, 1, C). `from_last`: the last weight is that of the first tap.
STRATA_FUNCTION tensor weighted_sum(const operation_call& c, const std::vector<tensor>& taps, tensor kernel, bool from_last) {
  const std::int64_t channels = kernel.extent(3), places = std::int64_t(taps.size());
  const tensor weights = reshape(convert(c.factor(kernel), c.step.number), {places, channels});
  tensor sum;
  for (std::int64_t i = 0; i < places; ++i) {
    const std::int64_t at = from_last ? places - 1 - i : i;
    const tensor tap = convert(taps[std::size_t(i)], c.step.number);
    const tensor product = tap * along_last_axis(reshape(slice(weights, {at, 0}, {at + 1, channels}), {channels}), tap);
    sum = sum ? sum + product : product;
  }
  return sum;
}

STRATA_FUNCTION bool image_convolution::is_by_element(const operation_call& c, const extents& kernel) const {
  return c.step.platform.depthwise_by_element && groups_ > 1 && kernel[2] == 1 && kernel[3] == groups_;
}

STRATA_FUNCTION std::vector<tensor> image_convolution::taps(tensor x) const {
  const window_axis &down = axes_[0], &across = axes_[1];
  const auto beyond = [](const window_axis& a) { return std::max(0, (a.out() - 1) * a.stride + a.reach() - a.in - a.padding()); };
  const tensor image = pad(x, {0, down.padding(), across.padding(), 0}, {0, beyond(down), beyond(across), 0}, {0, 0, 0, 0});
  return window_elements(image, axes_, {down.out(), across.out()}, {down.stride, across.stride});
}

STRATA_FUNCTION tensor image_convolution::input_gradient_by_element(const operation_call& c, tensor dy, tensor kernel) const {
  extents low{0, 0, 0, 0}, high{0, 0, 0, 0}, inner{0, 0, 0, 0};
  for (std::size_t i = 0; i < 2; ++i) {
    const window_axis& a = axes_[i];
    low[i + 1] = a.reach() - 1 - a.padding(), high[i + 1] = a.in - 1 - (a.out() - 1) * a.stride + a.padding();
    inner[i + 1] = a.stride - 1;
  }
  const tensor spread = pad(c.factor(dy), low, high, inner);
  return weighted_sum(c, window_elements(spread, axes_, {axes_[0].in, axes_[1].in}, {1, 1}), kernel, true);
}

STRATA_FUNCTION tensor image_convolution::kernel_gradient_by_element(const operation_call& c, tensor x, tensor dy,
                                                                     const extents& to) const {
  const tensor factor = convert(c.factor(dy), c.step.number);
  std::vector<tensor> sums;
  for (const tensor tap : taps(c.factor(x)))
    sums.push_back(reshape(sum_per_channel(convert(tap, c.step.number) * factor), {1, to[3]}));
  return reshape(concatenate(sums, 0), to);
}

STRATA_FUNCTION tensor image_convolution::forward(const operation_call& c, tensor x, tensor kernel) const {
  if (is_by_element(c, kernel.extents())) return weighted_sum(c, taps(c.factor(x)), kernel, false);
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
  if (is_by_element(c, kernel.extents())) return input_gradient_by_element(c, dy, kernel);
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
  if (is_by_element(c, to)) return kernel_gradient_by_element(c, x, dy, to);
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
  const std::int64_t places = x.extent(0) * down.out() * across.out();
  const tensor patches = reshape(concatenate(taps(c.factor(x)), 3), {places, to[0] * to[1] * to[2]});
  return reshape(dot_general(patches, reshape(c.factor(dy), {places, to[3]}), 0, 0, c.step.number, c.precision()), to);
}

STRATA_FUNCTION tensor convolution_forward(operation_call& c, const image_convolution& of, tensor kernel) {
  const tensor y = of.forward(c, c.x[0], kernel);
  return c.w.size() > 1 ? y + along_last_axis(c.w[1], y) : y;
}
STRATA_FUNCTION void convolution_backward(operation_call& c, const image_convolution& of, tensor kernel) {
  if (c.wants_dx[0]) c.set_dx(of.input_gradient(c, c.dy, kernel, c.x[0].extents()));
  if (c.wants_dw[0]) {
    const tensor gradient = of.kernel_gradient(c, c.x[0], c.dy, kernel.extents());
    c.dw[0] = gradient.extents() == c.w[0].extents() ? gradient : reshape(gradient, c.w[0].extents());
  }
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
