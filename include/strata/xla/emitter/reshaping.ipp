// Definitions of reshaping.hpp.
#pragma once

namespace strata::stablehlo {

namespace detail {

STRATA_FUNCTION tensor zero_padding_forward(operation_call& c, const padding_settings& s) {
  return pad(c.x[0], {0, s.top, s.left, 0}, {0, s.bottom, s.right, 0}, {0, 0, 0, 0});
}
STRATA_FUNCTION void zero_padding_backward(operation_call& c, const padding_settings& s) {
  c.set_dx(pad(c.dy, {0, -s.top, -s.left, 0}, {0, -s.bottom, -s.right, 0}, {0, 0, 0, 0}));
}

/// The weight of pixel k of an axis in pixel i of the enlarged one: (size * pixels, pixels). A tent around the centre of each
/// pixel, in whole steps of half an enlarged pixel, so that it is exact.
STRATA_FUNCTION tensor bilinear_weights(graph& in, element of, std::int64_t pixels, std::int64_t size) {
  const tensor_type type{element::i32, {size * pixels, pixels}};
  const tensor to = iota(in, type, 0), from = iota(in, type, 1), zero = filled(0, to), whole = filled(double(2 * size), to);
  const tensor inside = binary("maximum", to * 2 + double(1 - size), zero);
  const tensor place = binary("minimum", inside, filled(double(2 * size * (pixels - 1)), to));
  const tensor distance = unary("abs", place - from * double(2 * size));
  return convert(binary("maximum", whole - distance, zero), of) / double(2 * size);
}
/// (rows, H, W, C) times a matrix (H', H) or (W', W) on that axis.
STRATA_FUNCTION tensor along_axis(tensor image, tensor weights, int axis, element of) {
  const tensor y = dot_general(weights, image, 1, axis, of, product_precision::as_operands);
  return axis == 1 ? transpose(y, {1, 0, 2, 3}) : transpose(y, {1, 2, 0, 3});
}
STRATA_FUNCTION tensor up_sampling_forward(operation_call& c, const up_sampling_settings& s) {
  const extents& x = c.x[0].extents();
  if (!s.bilinear)
    return reshape(broadcast(c.x[0], {x[0], x[1], s.sampling_height, x[2], s.sampling_width, x[3]}, {0, 1, 3, 5}), c.out);
  const element of = c.step.number;
  const tensor taller = along_axis(c.x[0], bilinear_weights(c.in(), of, x[1], s.sampling_height), 1, of);
  return along_axis(taller, bilinear_weights(c.in(), of, x[2], s.sampling_width), 2, of);
}
STRATA_FUNCTION void up_sampling_backward(operation_call& c, const up_sampling_settings& s) {
  const extents& x = c.x[0].extents();
  if (!s.bilinear)
    return c.set_dx(reduce(reduction::add, reshape(c.dy, {x[0], x[1], s.sampling_height, x[2], s.sampling_width, x[3]}), {2, 4}));
  const element of = c.step.number;
  const tensor down = transpose(bilinear_weights(c.in(), of, x[1], s.sampling_height), {1, 0});
  const tensor across = transpose(bilinear_weights(c.in(), of, x[2], s.sampling_width), {1, 0});
  c.set_dx(along_axis(along_axis(c.dy, down, 1, of), across, 2, of));
}

STRATA_FUNCTION tensor columns_forward(operation_call& c, const column_settings& s) {
  extents begin(c.out.size()), end = c.out;
  begin.back() = s.first, end.back() = s.first + s.count;
  return slice(c.x[0], begin, end);
}
STRATA_FUNCTION void columns_backward(operation_call& c, const column_settings& s) {
  extents low(c.out.size()), high(c.out.size());
  low.back() = s.first, high.back() = c.x[0].extents().back() - s.first - s.count;
  c.set_dx(pad(c.dy, low, high, extents(c.out.size())));
}

}  // namespace detail

STRATA_FUNCTION tensor emission<stack_of_branches>::forward(operation_call& c) { return concatenate(c.x, c.x[0].rank() - 1); }
STRATA_FUNCTION void emission<stack_of_branches>::backward(operation_call& c) {
  extents begin(c.out.size()), end = c.out;
  end.back() = 0;
  for (std::size_t k = 0; k < c.x.size(); ++k) {
    begin.back() = end.back();
    end.back() += c.x[k].extents().back();
    c.dx[k] = slice(c.dy, begin, end);
  }
}

}  // namespace strata::stablehlo
