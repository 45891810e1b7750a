// Definitions of normalization.hpp.
#pragma once

namespace strata::stablehlo {

namespace detail {

STRATA_FUNCTION tensor scale_and_shift::apply(const operation_call& c, tensor z) const {
  if (scale) z = z * along_last_axis(c.w[0], z);
  return center ? z + along_last_axis(c.w[scale ? 1 : 0], z) : z;
}
STRATA_FUNCTION tensor scale_and_shift::gradient(operation_call& c, tensor z) const {
  if (scale && c.wants_dw[0]) c.dw[0] = sum_per_channel(c.dy * z);
  if (center && c.wants_dw[scale ? 1 : 0]) c.dw[scale ? 1 : 0] = sum_per_channel(c.dy);
  return scale ? c.dy * along_last_axis(c.w[0], z) : c.dy;
}

STRATA_FUNCTION tensor inverse_root(tensor variance, double epsilon) {
  const tensor root = unary("sqrt", variance + epsilon);
  return filled(1, root) / root;
}

/// The number of elements per channel over which a batch_norm computes its statistics: a scalar.
STRATA_FUNCTION tensor elements_per_channel(const operation_call& c) {
  const std::int64_t of_sample = c.x[0].type().size() / c.x[0].extent(0) / c.x[0].extents().back();
  return c.step.batch_count * double(of_sample);
}

STRATA_FUNCTION tensor batch_norm_forward(operation_call& c, const batch_norm_settings& s) {
  const scale_and_shift affine{s.scale, s.center};
  const tensor x = c.x[0], count = elements_per_channel(c);
  // The variance is that around the mean, in a second sum: the mean of squares minus the square of the mean loses digits.
  const tensor mean = c.step.over_replicas(sum_per_channel(c.step.only_samples(x))) / count;
  const tensor centred = x - along_last_axis(mean, x);
  const tensor variance = c.step.over_replicas(sum_per_channel(c.step.only_samples(centred * centred))) / count;
  const tensor inverse = inverse_root(variance, s.epsilon.value()), z = centred * along_last_axis(inverse, x);
  c.saved = {z, inverse};
  const double momentum = s.momentum.value();
  const std::size_t state = std::size_t(s.scale) + std::size_t(s.center);
  c.new_state.resize(c.w.size());
  c.new_state[state] = c.w[state] * momentum + mean * (1 - momentum);
  c.new_state[state + 1] = c.w[state + 1] * momentum + variance * (1 - momentum);
  return affine.apply(c, z);
}
STRATA_FUNCTION tensor batch_norm_infer(operation_call& c, const batch_norm_settings& s) {
  const tensor x = c.x[0];
  const std::size_t state = std::size_t(s.scale) + std::size_t(s.center);
  const tensor inverse = inverse_root(c.w[state + 1], s.epsilon.value());
  const tensor z = (x - along_last_axis(c.w[state], x)) * along_last_axis(inverse, x);
  c.saved = {z, inverse};
  return scale_and_shift{s.scale, s.center}.apply(c, z);
}
STRATA_FUNCTION void batch_norm_backward(operation_call& c, const batch_norm_settings& s) {
  const tensor z = c.saved[0], inverse = along_last_axis(c.saved[1], z);
  const tensor dz = scale_and_shift{s.scale, s.center}.gradient(c, z);
  if (!c.wants_dx[0]) return;
  if (s.frozen) return c.set_dx(dz * inverse);
  const tensor parts[] = {sum_per_channel(dz), sum_per_channel(c.step.only_samples(dz * z))};
  const std::vector<tensor> sums = c.step.over_replicas(parts);
  const tensor count = elements_per_channel(c);
  const tensor mean = along_last_axis(sums[0] / count, z), mean_z = along_last_axis(sums[1] / count, z);
  c.set_dx(c.step.only_samples((dz - mean - z * mean_z) * inverse));
}

/// The mean along the last axis, spread over x.
STRATA_FUNCTION tensor mean_of_last_axis(tensor x) {
  return along_first_axes(reduce(reduction::add, x, {x.rank() - 1}) / double(x.extents().back()), x);
}
STRATA_FUNCTION tensor layer_norm_forward(operation_call& c, const layer_norm_settings& s) {
  const tensor centred = c.x[0] - mean_of_last_axis(c.x[0]);
  const tensor inverse = inverse_root(mean_of_last_axis(centred * centred), s.epsilon.value());
  c.saved = {centred * inverse, inverse};
  return scale_and_shift{s.scale, s.center}.apply(c, c.saved[0]);
}
STRATA_FUNCTION void layer_norm_backward(operation_call& c, const layer_norm_settings& s) {
  const tensor z = c.saved[0], dz = scale_and_shift{s.scale, s.center}.gradient(c, z);
  c.set_dx((dz - mean_of_last_axis(dz) - z * mean_of_last_axis(dz * z)) * c.saved[1]);
}

STRATA_FUNCTION tensor fixed_deviation(const operation_call& c) {
  const tensor variance = c.w[1];
  return along_last_axis(unary("sqrt", binary("maximum", variance, filled(strata::normalization::least_variance, variance))),
                         c.x[0]);
}

}  // namespace detail

STRATA_FUNCTION tensor emission<normalization>::forward(operation_call& c) {
  return (c.x[0] - along_last_axis(c.w[0], c.x[0])) / detail::fixed_deviation(c);
}
STRATA_FUNCTION void emission<normalization>::backward(operation_call& c) { c.set_dx(c.dy / detail::fixed_deviation(c)); }

}  // namespace strata::stablehlo
