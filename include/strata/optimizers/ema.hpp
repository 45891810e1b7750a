// ema: an optimizer that also keeps a moving average of the weights.
#pragma once
#include <array>
#include <cstddef>
#include <strata/concepts/optimizer.hpp>
#include <strata/optimizers/elementwise.hpp>
#include <strata/optimizers/setting.hpp>
#include <strata/optimizers/validation.hpp>
#include <tuple>
#include <utility>

namespace strata {

namespace core {
/// Applies the rule of another optimizer, then  average += (w - average) * pace, in a slot after those of the rule. The first
/// step copies the weights: its pace is 1.
template <class Rule, class T>
struct ema_rule {
  static constexpr int slots = Rule::slots + 1;
  Rule rule;
  T pace;

  template <class V, class... Slot>
    requires(sizeof...(Slot) == std::size_t(slots) && elementwise_rule<Rule, V>)
  constexpr void operator()(V& w, reduced_gradient<V> gradient, Slot&... slot) const {
    with_slots_of_rule([&](auto&... own) { rule(w, gradient, own...); }, slot...);
    add_to_average(w, slot...);
  }

  template <class V, class... Slot>
    requires(sizeof...(Slot) == std::size_t(slots) && parameterwise_rule<Rule, V>)
  constexpr V propose(const V& w, reduced_gradient<V> gradient, Slot&... slot) const {
    return with_slots_of_rule([&](auto&... own) { return rule.propose(w, gradient, own...); }, slot...);
  }
  template <class N = double>
  constexpr auto scale(const norms_of_parameter<N>& norms) const
    requires requires { rule.scale(norms); }
  {
    return rule.scale(norms);
  }
  template <class V>
    requires factored_rule<Rule, V>
  constexpr V square(reduced_gradient<V> gradient) const {
    return rule.square(gradient);
  }
  template <class V>
    requires factored_rule<Rule, V>
  constexpr void follow(V& moment, const V& mean) const {
    rule.follow(moment, mean);
  }
  template <class V>
    requires factored_rule<Rule, V>
  constexpr V propose(reduced_gradient<V> gradient, const V& moment) const {
    return rule.propose(gradient, moment);
  }
  template <class V, class Scale, class... Slot>
    requires(sizeof...(Slot) == std::size_t(slots) && (parameterwise_rule<Rule, V> || factored_rule<Rule, V>))
  constexpr void apply(V& w, const V& direction, Scale scale, Slot&... slot) const {
    if constexpr (requires { rule.apply(w, direction, scale); })
      rule.apply(w, direction, scale);
    else
      with_slots_of_rule([&](auto&... own) { rule.apply(w, direction, scale, own...); }, slot...);
    add_to_average(w, slot...);
  }

 private:
  template <class F, class... Slot>
  static constexpr decltype(auto) with_slots_of_rule(F&& f, Slot&... slot) {
    const std::tuple<Slot&...> all(slot...);
    return [&]<std::size_t... I>(std::index_sequence<I...>) -> decltype(auto) {
      return f(std::get<I>(all)...);
    }(std::make_index_sequence<std::size_t(Rule::slots)>());
  }
  template <class V, class... Slot>
  constexpr void add_to_average(const V& w, Slot&... slot) const {
    V& average = std::get<std::size_t(Rule::slots)>(std::tuple<Slot&...>(slot...));
    average += detail::product(w - average, pace);
  }
};
}  // namespace core

namespace detail {
/// "ema_adam": distinguishes it from adam in snapshots and messages between processes.
template <class Optimizer>
inline constexpr auto name_of_ema = [] {
  constexpr std::size_t size = std::char_traits<char>::length(Optimizer::name);
  std::array<char, size + 5> text{'e', 'm', 'a', '_'};
  for (std::size_t i = 0; i < size; ++i) text[4 + i] = Optimizer::name[i];
  return text;
}();
template <class Optimizer>
constexpr std::size_t count_settings() {
  if constexpr (requires(const Optimizer& o) { o.settings(); })
    return std::tuple_size_v<decltype(std::declval<const Optimizer&>().settings())>;
  else
    return 0;
}
}  // namespace detail

/// `trainer{network{}, ema{adam{.learning_rate = 3e-4}, 0.999}, ...}` trains as adam alone, and keeps a moving average of the
/// weights beside them, momentum * average + (1 - momentum) * weights after each step. The average often predicts better than the
/// last weights: take_averages(model) copies it to the weights, and the callback average_weights does so at the end of fit.
/// In Keras: use_ema and ema_momentum.  https://keras.io/api/optimizers
template <core::optimizer Optimizer>
struct ema {
  static constexpr const char* name = detail::name_of_ema<Optimizer>.data();
  static constexpr core::optimizer_traits traits{
      .needs_whole_matrices = core::traits_of_optimizer<Optimizer>.needs_whole_matrices, .averages_weights = true};

  Optimizer of;
  double momentum;
  learning_rate_schedule learning_rate;
  double weight_decay, clipnorm, clipvalue, global_clipnorm;

  ema(Optimizer optimizer, double momentum_of_average = 0.99)  // NOLINT: ema{adam{}} is meant
      : of(std::move(optimizer)),
        momentum(momentum_of_average),
        learning_rate(of.learning_rate),
        weight_decay(of.weight_decay),
        clipnorm(of.clipnorm),
        clipvalue(of.clipvalue),
        global_clipnorm(of.global_clipnorm) {}

  /// The slots of the optimizer, and one for the average.
  int slots() const { return of.slots() + 1; }
  bool needs_norms() const
    requires core::norm_optimizer<Optimizer>
  {
    return of.needs_norms();
  }
  /// The settings of the optimizer, and the momentum: processes that train together compare them.
  std::array<core::optimizer_setting, detail::count_settings<Optimizer>() + 1> settings() const {
    std::array<core::optimizer_setting, detail::count_settings<Optimizer>() + 1> all{};
    std::size_t n = 0;
    if constexpr (detail::count_settings<Optimizer>() > 0)
      for (const core::optimizer_setting& s : of.settings()) all[n++] = s;
    all[n] = {"ema_momentum", momentum};
    return all;
  }
  /// Throws strata_error.
  void validate() const {
    of.validate();
    if (!(momentum >= 0 && momentum < 1)) detail::refuse(name, "momentum", momentum, "at least 0 and below 1");
  }

  template <class T, class F>
  void with_rule(long step, double rate, F&& f) const {
    of.template with_rule<T>(
        step, rate, [&]<class Rule>(const Rule& rule) { f(core::ema_rule<Rule, T>{rule, step == 0 ? T(1) : T(1 - momentum)}); });
  }
};

}  // namespace strata
