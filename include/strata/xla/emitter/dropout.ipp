// Definitions of dropout.hpp.
#pragma once
#include <tuple>
#include <utility>

namespace strata::stablehlo {

namespace detail {
/// The lower and the higher 32 bits.
STRATA_FUNCTION std::pair<tensor, tensor> words_of(tensor wide) {
  return {convert(wide, element::ui32), convert(binary("shift_right_logical", wide, filled(32, wide)), element::ui32)};
}
}  // namespace detail

STRATA_FUNCTION philox_key::philox_key(tensor key) { std::tie(low, high) = detail::words_of(key); }

STRATA_FUNCTION std::array<tensor, 4> philox_key::operator()(std::array<tensor, 4> c) const {
  tensor k0 = low, k1 = high;
  const auto product = [](tensor a, double b) {
    const tensor wide = convert(a, element::ui64);
    return detail::words_of(wide * filled(b, wide));
  };
  for (int round = 0; round < 10; ++round) {
    const auto [a_low, a_high] = product(c[0], 0xD2511F53u);
    const auto [b_low, b_high] = product(c[2], 0xCD9E8D57u);
    c = {binary("xor", binary("xor", b_high, c[1]), k0), b_low, binary("xor", binary("xor", a_high, c[3]), k1), a_low};
    k0 = k0 + double(0x9E3779B9u), k1 = k1 + double(0xBB67AE85u);
  }
  return c;
}

STRATA_FUNCTION philox_key philox_key::fork(std::uint64_t stream) const {
  const auto word = [&](std::uint64_t v) { return filled(double(std::uint32_t(v)), low); };
  const auto words = (*this)({word(stream), word(stream >> 32), word(0x666F726B), word(0)});
  return {words[0], words[1]};
}

namespace detail {
STRATA_FUNCTION tensor dropout_forward(operation_call& c, double rate, shape noise) {
  const tensor x = c.x[0];
  extents drawn_extents = x.extents();
  for (int axis = 0; axis < noise.rank(); ++axis) drawn_extents[std::size_t(axis) + 1] = noise[axis];
  const std::int64_t rows = x.extent(0), size = tensor_type{element::ui32, drawn_extents}.size() / rows, blocks = (size + 3) / 4;
  const tensor_type counter{element::ui32, {rows, blocks}};
  graph& in = c.in();
  // One block of four words for four elements of the noise of a sample; the sample is counted over all replicas.
  const tensor element_index = iota(in, counter, 1), zero = filled(0, element_index);
  const tensor_type wide{element::ui64, {rows, blocks}};
  tensor sample = iota(in, wide, 0);
  if (c.step.replicas > 1) {
    const tensor replica = convert(in.operation("replica_id", {}, {element::ui32, {}}), element::ui64);
    sample = sample + replica * double(rows);
  }
  const auto [sample_low, sample_high] = words_of(sample);
  const auto words = philox_key(c.step.random_key).fork(std::uint64_t(c.node))({element_index, zero, sample_low, sample_high});
  std::vector<tensor> columns;
  for (const tensor w : words) columns.push_back(reshape(w, {rows, blocks, 1}));
  const tensor all = reshape(concatenate(columns, 2), {rows, 4 * blocks});
  const tensor drawn = reshape(slice(all, {0, 0}, {rows, size}), drawn_extents);
  tensor keeps = compare("GE", drawn, filled(double(std::uint64_t(rate * 0x1p32)), drawn));
  if (noise != shape{}) keeps = broadcast(keeps, x.extents());
  c.saved = {select(keeps, filled(1 / (1 - rate), x), filled(0, x))};
  return x * c.saved[0];
}
}  // namespace detail

}  // namespace strata::stablehlo
