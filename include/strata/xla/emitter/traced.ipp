// Definitions of traced.hpp.
#pragma once
#include <cstring>

namespace strata::stablehlo {

namespace detail {
STRATA_FUNCTION std::vector<traced> select_paths(traced_path& path, void* context, std::vector<traced> (*formula)(void*),
                                                 tensor like) {
  if (++path.runs > max_paths)
    throw_error(
        {formula_name, " has more than ", max_paths,
         " paths through its comparisons, such as 13 comparisons that depend on different numbers: it cannot be traced into "
         "a module of StableHLO. Where they choose between two numbers, max, min or abs is no comparison; or give it an "
         "emission (docs/tpu.md)"});
  const std::size_t given = path.begun = path.decisions.size();
  std::vector<traced> results = [&] {
    const set_for_now here(current_path, &path);
    return formula(context);
  }();
  const std::vector<traced_path::decision> all = path.decisions;
  for (std::size_t i = all.size(); i > given; --i) {
    path.decisions.assign(all.begin(), all.begin() + long(i - 1));
    path.decisions.push_back({all[i - 1].condition, false});
    const std::vector<traced> otherwise = select_paths(path, context, formula, like);
    for (std::size_t k = 0; k < results.size(); ++k) {
      const traced yes = results[k], no = otherwise[k];
      if (yes.is_constant() && no.is_constant() && std::memcmp(&yes, &no, sizeof(double)) == 0) continue;
      results[k] = traced(select(all[i - 1].condition, yes.in(like), no.in(like)));
    }
  }
  return results;
}
}  // namespace detail

STRATA_FUNCTION bool traced_condition::decide(tensor condition) {
  detail::traced_path* const path = detail::current_path;
  if (!path)
    throw_error(
        {detail::formula_name,
         " branches on a recorded number where its two paths cannot be joined, as in with_rule of an optimizer: compare in "
         "the rule"});
  for (const auto& known : path->decisions)
    if (known.condition == condition) return known.taken;
  path->decisions.push_back({condition, true});
  return true;
}

STRATA_FUNCTION void traced::become_step_scalar() {
  if (!detail::step_scalars_made) return;
  if (detail::step_scalars_given) at_ = detail::step_scalars_given[detail::step_scalars_made->size()];
  detail::step_scalars_made->push_back(constant_);
}

STRATA_FUNCTION traced traced::record_unary(const char* name, traced x) {
  if (x.at_) return unary(name, x.at_);
  const std::string_view function = name;
  const double c = x.constant_;
  return known(function == "exponential"             ? std::exp(c)
               : function == "exponential_minus_one" ? std::expm1(c)
               : function == "log"                   ? std::log(c)
               : function == "log_plus_one"          ? std::log1p(c)
               : function == "tanh"                  ? std::tanh(c)
               : function == "sine"                  ? std::sin(c)
               : function == "cosine"                ? std::cos(c)
               : function == "sqrt"                  ? std::sqrt(c)
               : function == "abs"                   ? std::abs(c)
               : function == "floor"                 ? std::floor(c)
                                                     : std::ceil(c));
}
STRATA_FUNCTION traced traced::record_binary(const char* name, traced a, traced b) {
  if (both(a, b)) return known(std::pow(a.constant_, b.constant_));
  const tensor like = a.at_ ? a.at_ : b.at_;
  return binary(name, a.in(like), b.in(like));
}
STRATA_FUNCTION traced_condition traced::record_comparison(const char* direction, traced a, traced b) {
  const tensor like = a.at_ ? a.at_ : b.at_, left = a.in(like), right = b.in(like);
  if (left == right && std::string_view(direction) == "LT") return false;
  return compare(direction, left, right);
}
STRATA_FUNCTION traced traced::chosen(traced_condition which, traced yes, traced no) {
  if (!which.at_) return which.known_ ? yes : no;
  const tensor like = yes.at_ ? yes.at_ : no.at_;
  return stablehlo::select(which.at_, yes.in(like), no.in(like));
}
STRATA_FUNCTION traced erf(traced x) {
  return x.at_ ? traced(x.at_.in().operation("chlo.erf", {x.at_}, x.at_.type())) : traced::known(std::erf(x.constant_));
}
STRATA_FUNCTION traced erfc(traced x) {
  return x.at_ ? traced(x.at_.in().operation("chlo.erfc", {x.at_}, x.at_.type())) : traced::known(std::erfc(x.constant_));
}

STRATA_FUNCTION traced traced_math::log(traced x) { return stablehlo::log(x); }
STRATA_FUNCTION traced traced_math::power(traced x, double exponent) { return stablehlo::pow(x, exponent); }
STRATA_FUNCTION traced traced_math::tanh(traced x) { return stablehlo::tanh(x); }
STRATA_FUNCTION traced traced_math::exp_of_negative(traced x) { return stablehlo::exp(x); }
STRATA_FUNCTION traced traced_math::log1p_of_fraction(traced x) { return stablehlo::log1p(x); }

}  // namespace strata::stablehlo
