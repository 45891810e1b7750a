// Definitions of update.hpp.
#pragma once

namespace strata::stablehlo::detail {

STRATA_FUNCTION void prepare_update(std::span<updated_parameter> parameters, const update_settings& s) {
  if (parameters.empty()) return;
  const auto squares_of = [](tensor t) { return sum(t * t); };
  // limit / norm, where the norm is larger.
  const auto factor_of = [](tensor squares, double limit) {
    const tensor norm = unary("sqrt", squares), bound = filled(limit, norm);
    return select(compare("LE", norm, bound), filled(1, norm), bound / norm);
  };
  for (updated_parameter& p : parameters)
    if (!p.regularizer.empty())
      p.gradient = trace(p.weight, [&] {
        return detail::add_penalty(all_reduced::mean(p.gradient), traced(p.weight), traced(p.regularizer.l1),
                                   traced(p.regularizer.l2))
            .value();
      });
  if (s.clipnorm > 0)
    for (updated_parameter& p : parameters) p.gradient = p.gradient * factor_of(squares_of(p.gradient), s.clipnorm);
  if (s.global_clipnorm > 0) {
    tensor all = squares_of(parameters[0].gradient);
    for (const updated_parameter& p : parameters.subspan(1)) all = all + squares_of(p.gradient);
    // Not finite where the norm is not, so that clipping does not hide that.
    const tensor norm = unary("sqrt", all), factor = factor_of(all, s.global_clipnorm) + (norm - norm);
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
STRATA_FUNCTION tensor factored_moments::of_elements(const extents& parameter) const {
  const tensor mean = reduce(reduction::add, of_rows, {1}) / double(rows);
  const tensor factor = of_rows / along_first_axes(mean, of_rows);
  const extents all{matrices, rows, columns};
  return reshape(broadcast(factor, all, {0, 1}) * broadcast(of_columns, all, {0, 2}), parameter);
}

STRATA_FUNCTION norms_of_parameter<traced> norms_of(tensor weight, tensor direction) {
  const auto norm = [](tensor t) { return traced(unary("sqrt", sum(t * t))); };
  return {norm(weight), norm(direction), long(weight.type().size())};
}

}  // namespace strata::stablehlo::detail
