// Definitions of update.hpp.
#pragma once

namespace strata::stablehlo::detail {

/// The norm over all elements of some tensors. If their squares would overflow or underflow, the elements are first divided by
/// the largest one.
STRATA_FUNCTION tensor norm_of(std::span<const tensor> tensors) {
  tensor largest, squares;
  for (const tensor t : tensors) {
    extents all;
    for (int axis = 0; axis < t.rank(); ++axis) all.push_back(axis);
    const tensor of_one = reduce(reduction::maximum, unary("abs", t), all);
    largest = largest ? binary("maximum", largest, of_one) : of_one;
  }
  const auto is = [&](const char* how, double bound) { return compare(how, largest, filled(bound, largest)); };
  const tensor not_zero = select(is("EQ", 0), filled(1, largest), largest);
  const tensor unit = select(is("GT", 1e9), largest, select(is("LT", 1e-9), not_zero, filled(1, largest)));
  for (const tensor t : tensors) {
    const tensor scaled = t / unit, of_one = sum(scaled * scaled);
    squares = squares ? squares + of_one : of_one;
  }
  return unit * unary("sqrt", squares);
}

STRATA_FUNCTION void prepare_update(std::span<updated_parameter> parameters, const update_settings& s) {
  if (parameters.empty()) return;
  // limit / norm, where the norm is larger. Not finite where the norm is not, so that clipping does not hide that.
  const auto factor_of = [](std::span<const tensor> gradients, double limit) {
    const tensor norm = norm_of(gradients), bound = filled(limit, norm);
    return select(compare("LE", norm, bound), filled(1, norm), bound / norm) + (norm - norm);
  };
  for (updated_parameter& p : parameters)
    if (!p.regularizer.empty())
      p.gradient = trace(p.weight, [&] {
        return detail::add_penalty(all_reduced::mean(p.gradient), traced(p.weight), traced(p.regularizer.l1),
                                   traced(p.regularizer.l2))
            .value();
      });
  if (s.clipnorm > 0)
    for (updated_parameter& p : parameters) p.gradient = p.gradient * factor_of({&p.gradient, 1}, s.clipnorm);
  if (s.global_clipnorm > 0) {
    std::vector<tensor> all;
    for (const updated_parameter& p : parameters) all.push_back(p.gradient);
    const tensor factor = factor_of(all, s.global_clipnorm);
    for (updated_parameter& p : parameters) p.gradient = p.gradient * factor;
  }
  for (updated_parameter& p : parameters) {
    if (s.clipvalue > 0)
      p.gradient = trace(p.weight, [&] { return clip_by_value(all_reduced::mean(p.gradient), traced(s.clipvalue)).value(); });
    if (s.decay) p.weight = p.weight - p.weight * s.decay;
  }
}

STRATA_FUNCTION bool factored_moments::is_matrices(const extents& parameter) {
  const std::size_t rank = parameter.size();
  return rank >= 2 && parameter[rank - 2] > 1 && parameter[rank - 1] > 1;
}
STRATA_FUNCTION factored_moments::factored_moments(const extents& parameter, tensor slot)
    : matrices(1), rows(parameter[parameter.size() - 2]), columns(parameter.back()) {
  for (std::size_t i = 0; i + 2 < parameter.size(); ++i) matrices *= parameter[i];
  of_rows = reshape(stablehlo::slice(slot, {0}, {matrices * rows}), {matrices, rows});
  of_columns = reshape(stablehlo::slice(slot, {matrices * rows}, {matrices * (rows + columns)}), {matrices, columns});
}
STRATA_FUNCTION tensor factored_moments::mean_of_rows(tensor squares) const {
  return reduce(reduction::add, reshape(squares, {matrices, rows, columns}), {2}) / double(columns);
}
STRATA_FUNCTION tensor factored_moments::mean_of_columns(tensor squares) const {
  return reduce(reduction::add, reshape(squares, {matrices, rows, columns}), {1}) / double(rows);
}
STRATA_FUNCTION tensor factored_moments::slot() const {
  const tensor parts[] = {reshape(of_rows, {matrices * rows}), reshape(of_columns, {matrices * columns})};
  return concatenate(parts, 0);
}
STRATA_FUNCTION factored_moments::factors factored_moments::of_elements(const extents& parameter) const {
  const tensor mean = along_first_axes(reduce(reduction::add, of_rows, {1}) / double(rows), of_rows);
  const auto spread = [&](tensor t, std::int64_t axis) {
    return reshape(broadcast(t, {matrices, rows, columns}, {0, axis}), parameter);
  };
  return {spread(of_columns, 2), spread(of_rows / mean, 1), spread(unary("sqrt", mean) / unary("sqrt", of_rows), 1)};
}

STRATA_FUNCTION norms_of_parameter<traced> norms_of(tensor weight, tensor direction) {
  return {norm_of({&weight, 1}), norm_of({&direction, 1}), long(weight.type().size())};
}

}  // namespace strata::stablehlo::detail
