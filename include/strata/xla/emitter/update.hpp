// The update of parameters: penalties, clipping and decay, then the rule of the optimizer, which is traced.
#pragma once
#include <cmath>
#include <strata/concepts/device.hpp>
#include <strata/concepts/optimizer.hpp>
#include <strata/network/layout.hpp>
#include <strata/optimizers/gradient_modifiers.hpp>
#include <strata/xla/emitter/traced.hpp>

namespace strata {

namespace core {
// The diagnostic about a rule that only accepts built-in number types. Never defined.
template <class Rule>
struct rule_cannot_be_traced;
}  // namespace core

namespace stablehlo {

/// A trained parameter in an update.
struct updated_parameter {
  tensor weight, gradient;  // gradient: the mean over the samples of all replicas
  std::vector<tensor> slots;
  penalty regularizer;
};

/// The changes to gradients before the rule, from the settings of an optimizer.
struct update_settings {
  double clipnorm, clipvalue, global_clipnorm;
  tensor decay;  // weight decay times the rate, a scalar; none: 0
};

namespace detail {

/// The gradients of a module count as reduced after all_reduce.
struct all_reduced : gradient_reduction {
  static reduced_gradient<traced> mean(traced gradient) {
    return reduced<host_device>(static_cast<traced* const*>(nullptr), 0, 1).mean().of(gradient);
  }
};

/// Adds penalties, clips gradients and decays weights.
void prepare_update(std::span<updated_parameter> parameters, const update_settings& settings);

/// Second moments of rows and columns: (matrices, rows) and (matrices, columns) from a slot, and back.
struct factored_moments {
  std::int64_t matrices, rows, columns;
  tensor of_rows, of_columns;

  factored_moments(const extents& parameter, tensor slot);
  static bool is_matrices(const extents& parameter);
  /// Means of squares over each row and each column.
  tensor mean_of_rows(tensor squares) const;
  tensor mean_of_columns(tensor squares) const;
  tensor slot() const;
  /// The factors of the moment of each element, of the shape of a parameter: the moment of its column, and that of its row over
  /// the mean of those of all rows.
  struct factors {
    tensor of_columns, of_rows, inverse_roots_of_rows;
  };
  factors of_elements(const extents& parameter) const;
};
/// The scalars of a parameter that the rule reads: the norms of its weights and of a direction.
norms_of_parameter<traced> norms_of(tensor weight, tensor direction);

template <class Rule, class F, int... Slot>
auto with_slots(F&& f, std::vector<traced>& slots, std::integer_sequence<int, Slot...>) {
  return f(slots[std::size_t(Slot)]...);
}

template <class Rule>
void apply_directions(const Rule& rule, updated_parameter& p, tensor direction) {
  constexpr bool with_all = detail::applies_with_slots<Rule, traced, detail::slots_of_rule<Rule>>;
  const norms_of_parameter<traced> norms = norms_of(p.weight, direction);
  const tensor scalar = reshape(slice(reshape(p.weight, {p.weight.type().size()}), {0}, {1}), {});
  const traced scale = select_paths(scalar, [&] { return std::vector<traced>{rule.scale(norms)}; })[0];
  const std::vector<traced> after = select_paths(p.weight, [&] {
    traced w(p.weight);
    std::vector<traced> slots(p.slots.begin(), p.slots.end());
    if constexpr (with_all)
      with_slots<Rule>([&](auto&... own) { rule.apply(w, traced(direction), scale, own...); }, slots,
                       detail::slots_of_rule<Rule>{});
    else
      rule.apply(w, traced(direction), scale);
    slots.insert(slots.begin(), w);
    return slots;
  });
  p.weight = after[0].in(p.weight);
  for (std::size_t k = 0; k < p.slots.size(); ++k) p.slots[k] = after[k + 1].in(p.slots[k]);
}

template <class Rule>
void apply_rule(const Rule& rule, updated_parameter& p) {
  using slots_of_rule = detail::slots_of_rule<Rule>;
  const traced g(p.gradient);
  if constexpr (elementwise_rule<Rule, traced> || parameterwise_rule<Rule, traced>) {
    const std::vector<traced> after = select_paths(p.weight, [&] {
      traced w(p.weight);
      std::vector<traced> slots(p.slots.begin(), p.slots.end());
      if constexpr (elementwise_rule<Rule, traced>)
        with_slots<Rule>([&](auto&... own) { rule(w, all_reduced::mean(g), own...); }, slots, slots_of_rule{});
      else
        w = with_slots<Rule>([&](auto&... own) { return traced(rule.propose(w, all_reduced::mean(g), own...)); }, slots,
                             slots_of_rule{});
      slots.insert(slots.begin(), w);
      return slots;
    });
    for (std::size_t k = 0; k < p.slots.size(); ++k) p.slots[k] = after[k + 1].in(p.slots[k]);
    if constexpr (elementwise_rule<Rule, traced>)
      p.weight = after[0].in(p.weight);
    else
      apply_directions(rule, p, after[0].in(p.weight));
  } else if constexpr (factored_rule<Rule, traced>) {
    const tensor squares = trace(p.weight, [&] { return rule.square(all_reduced::mean(g)); });
    const auto follow = [&](tensor moment, tensor mean) {
      return trace(moment, [&] {
        traced m(moment);
        rule.follow(m, traced(mean));
        return m;
      });
    };
    tensor direction;
    if (factored_moments::is_matrices(p.weight.extents())) {
      factored_moments m(p.weight.extents(), p.slots[0]);
      m.of_rows = follow(m.of_rows, m.mean_of_rows(squares));
      m.of_columns = follow(m.of_columns, m.mean_of_columns(squares));
      p.slots[0] = m.slot();
      const factored_moments::factors f = m.of_elements(p.weight.extents());
      direction = trace(p.weight, [&] {
        return strata::detail::propose_from_factors(rule, all_reduced::mean(g), traced(f.of_columns), traced(f.of_rows),
                                                    traced(f.inverse_roots_of_rows));
      });
    } else {
      const tensor moment = p.slots[0] = follow(p.slots[0], squares);
      direction = trace(p.weight, [&] { return rule.propose(all_reduced::mean(g), traced(moment)); });
    }
    const tensor moments = std::exchange(p.slots[0], filled(0, p.weight));  // no rule applies it
    apply_directions(rule, p, direction);
    p.slots[0] = moments;
  } else {
    static_assert(sizeof(rule_cannot_be_traced<Rule>) > 0,
                  "the rule of the optimizer cannot be traced: its functions take a V&, and scale() a norms_of_parameter<N>");
  }
}

/// f(rule) with scalars that stand for those of a step. Returns how many the optimizer makes.
template <class Optimizer, class F>
std::vector<double> with_traced_rule(const Optimizer& optimizer, long step, double rate, const tensor* scalars, F&& f) {
  std::vector<double> made;
  const set_for_now named(formula_name, static_cast<const char*>(Optimizer::name));
  const set_for_now given(step_scalars_given, scalars);
  const set_for_now record(step_scalars_made, &made);
  optimizer.template with_rule<traced>(step, rate, [&](const auto& rule) {
    const set_for_now stop(step_scalars_made, static_cast<std::vector<double>*>(nullptr));
    f(rule);
  });
  return made;
}
}  // namespace detail

/// The values of an update that change from step to step: those from which the optimizer constructs its rule, in its order, then
/// the decay of the weights.
template <class T, class Optimizer>
std::vector<T> step_scalars_of(const Optimizer& optimizer, long step, double rate) {
  const std::vector<double> made = detail::with_traced_rule(optimizer, step, rate, nullptr, [](const auto&) {});
  std::vector<T> out(made.begin(), made.end());
  if (optimizer.weight_decay > 0) out.push_back(T(optimizer.weight_decay * rate));
  return out;
}

/// The type of slot `k` of a parameter. A factored rule has the moments of matrices in its first one: those of all rows, then
/// those of all columns.
template <class Optimizer>
tensor_type slot_type(const Optimizer& optimizer, int k, const tensor_type& parameter) {
  bool is_factored = false;
  detail::with_traced_rule(optimizer, 0, 0.1, nullptr,
                           [&]<class Rule>(const Rule&) { is_factored = factored_rule<Rule, traced>; });
  if (k > 0 || !is_factored || !detail::factored_moments::is_matrices(parameter.extents)) return parameter;
  const std::int64_t rows = parameter.extents[parameter.extents.size() - 2], columns = parameter.extents.back();
  return {parameter.of, {parameter.size() / columns + parameter.size() / rows}};
}

/// The last step whose rule is compared with that of step 0: see update.
inline constexpr long last_compared_step = 1 << 20;

/// Updates parameters and slots. scalars: (n) as step_scalars_of, or none for n = 0. The rules of the steps 0, 1, 3, 7, 15, ...
/// must differ in these scalars only; throws strata_error otherwise. A rule that differs between those steps alone is not
/// found.
template <class Optimizer>
void update(const Optimizer& optimizer, tensor scalars, std::span<updated_parameter> parameters) {
  std::vector<tensor> each;
  for (std::int64_t i = 0; scalars && i < scalars.extent(0); ++i) each.push_back(reshape(slice(scalars, {i}, {i + 1}), {}));
  detail::prepare_update(parameters, {optimizer.clipnorm, optimizer.clipvalue, optimizer.global_clipnorm,
                                      optimizer.weight_decay > 0 ? each.back() : tensor()});
  const std::vector<updated_parameter> before(parameters.begin(), parameters.end());
  const auto apply = [&](long step, double rate, std::span<updated_parameter> to) {
    detail::with_traced_rule(optimizer, step, rate, each.data(), [&](const auto& rule) {
      for (updated_parameter& p : to) detail::apply_rule(rule, p);
    });
  };
  apply(0, 0.1, parameters);
  for (long step = 1; step < last_compared_step; step = 2 * step + 1) {
    std::vector<updated_parameter> later = before;
    apply(step, 0.1 / double(step + 1), later);
    for (std::size_t i = 0; i < later.size(); ++i)
      if (!(later[i].weight == parameters[i].weight) || later[i].slots != parameters[i].slots)
        throw_error({Optimizer::name,
                     ": its rule has numbers that change from step to step and are not of type T, the argument of ",
                     "with_rule: they cannot be traced into a module of StableHLO"});
  }
}

}  // namespace stablehlo
}  // namespace strata

#if STRATA_DEFINES
#include <strata/xla/emitter/update.ipp>
#endif
