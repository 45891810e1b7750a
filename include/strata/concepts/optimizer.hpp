// An optimizer turns the gradient of the global batch into a change of the weights.
#pragma once
#include <concepts>
#include <strata/base/error.hpp>
#include <strata/base/reason.hpp>
#include <strata/optimizers/gradient.hpp>
#include <strata/optimizers/learning_rate.hpp>
#include <strata/optimizers/optimizer_traits.hpp>
#include <strata/optimizers/parameter_norms.hpp>
#include <type_traits>
#include <utility>

namespace strata {

namespace detail {
template <class R, class V, class Gradient, class Slots>
inline constexpr bool updates_with = false;
template <class R, class V, class Gradient, int... I>
inline constexpr bool updates_with<R, V, Gradient, std::integer_sequence<int, I...>> =
    std::is_invocable_v<const R&, V&, Gradient, std::enable_if_t<(I >= 0), V>&...>;

template <class R, class V, class Gradient, class Slots>
inline constexpr bool proposes_with = false;
template <class R, class V, class Gradient, int... I>
inline constexpr bool proposes_with<R, V, Gradient, std::integer_sequence<int, I...>> =
    requires(const R& rule, const V& weight, Gradient gradient, std::enable_if_t<(I >= 0), V>&... slot) {
      { rule.propose(weight, gradient, slot...) } -> std::convertible_to<V>;
    };

template <class R, class V, class Gradient>
concept divides_by_moments = requires(const R& rule, V& moment, Gradient gradient) {
  { rule.square(gradient) } -> std::convertible_to<V>;
  rule.follow(moment, moment);
  { rule.propose(gradient, moment) } -> std::convertible_to<V>;
};

/// Whether apply() takes the slots, too.
template <class R, class V, class Slots>
inline constexpr bool applies_with_slots = false;
template <class R, class V, int... I>
inline constexpr bool applies_with_slots<R, V, std::integer_sequence<int, I...>> =
    requires(const R& rule, V& weight, const V& direction, std::enable_if_t<(I >= 0), V>&... slot) {
      rule.apply(weight, direction, rule.scale(parameter_norms{}), slot...);
    };

template <class R>
using slots_of_rule = std::make_integer_sequence<int, R::slots>;
}  // namespace detail

namespace core {
/// A rule for one element at a time, such as Adam's: a function object with `static constexpr int slots` and, for
/// V = T or a vector of T,
///   `operator()(V& weight, reduced_gradient<V> gradient, V&... slot) const`
/// It takes no gradient before the reduction, and is trivially copyable, so that each thread may keep a copy in registers.
template <class R, class V>
concept elementwise_rule = std::is_trivially_copyable_v<R> && requires {
  requires R::slots >= 0;
  requires detail::updates_with<R, V, reduced_gradient<V>, detail::slots_of_rule<R>>;
  requires !detail::updates_with<R, V, local_gradient<V>, detail::slots_of_rule<R>>;
};

/// A rule that also needs norms of each parameter, such as LAMB's or LARS'. A step has two passes over all elements:
///   `V propose(const V& weight, reduced_gradient<V> gradient, V&... slot) const`  updates the slots and returns a direction,
///                                       which is kept in place of the gradient
///   `scale(const parameter_norms&) const`  called between the passes, for each parameter: a T. It is a template over
///                                       norms_of_parameter<N>, N = double, if it is to be traced into a module (xla)
///   `apply(V& weight, const V& direction, T scale) const`  changes the weight; it may also take V&... slot
/// The norms are added up in a fixed order: their bits do not depend on the number of threads or processes.
///
/// A rule for whole matrices, such as Muon's (https://keras.io/api/optimizers/muon), would be a third kind, with a step between
/// the passes: when all directions are in place, each parameter of rank 2 or more is a matrix (product of all extents but the
/// last, last extent) in one array, and an engine replaces it by what the rule makes of it with the products of its backend.
/// `parameter_norms` are taken after that. The place is weight_update::run_parts, between `propose` and `apply_directions`.
template <class R, class V>
concept parameterwise_rule = std::is_trivially_copyable_v<R> && requires {
  requires R::slots >= 0;
  requires detail::proposes_with<R, V, reduced_gradient<V>, detail::slots_of_rule<R>>;
  requires !detail::proposes_with<R, V, local_gradient<V>, detail::slots_of_rule<R>>;
  requires detail::applies_with_slots<R, V, std::integer_sequence<int>> ||
               detail::applies_with_slots<R, V, detail::slots_of_rule<R>>;
};

/// A rule that divides by second moments, of which it keeps only the means of rows and columns of each matrix, such as
/// Adafactor's. A parameter of rank 2 or more is one matrix for each index before its last two; for any other parameter the rule
/// keeps the moment of each element. A step has three passes over all elements, the last two as in a parameterwise_rule:
///   `V square(reduced_gradient<V> gradient) const`
///   `follow(V& moment, V mean) const`   adds a mean of squares over a row, a column or one element to its moment
///   `V propose(reduced_gradient<V> gradient, V moment) const`  returns a direction; the moment of an element is the product of
///                                       those of its row and its column, over the mean of the moments of all rows. Where that
///                                       leaves the range of V, both arguments are scaled: s * gradient, s^2 * moment
///   `scale(const parameter_norms&) const`, `apply(V& weight, const V& direction, T scale) const`
/// The first slot holds the moments: for a matrix those of its rows, then those of its columns.
template <class R, class V>
concept factored_rule = std::is_trivially_copyable_v<R> && requires {
  requires R::slots >= 1;
  requires detail::divides_by_moments<R, V, reduced_gradient<V>>;
  requires !detail::divides_by_moments<R, V, local_gradient<V>>;
  requires detail::applies_with_slots<R, V, std::integer_sequence<int>> ||
               detail::applies_with_slots<R, V, detail::slots_of_rule<R>>;
};

template <class R, class V>
concept optimizer_rule = elementwise_rule<R, V> || parameterwise_rule<R, V> || factored_rule<R, V>;
}  // namespace core

namespace reasons {
inline constexpr reason optimizers_are_copyable;
inline constexpr reason optimizers_have_a_name;
inline constexpr reason optimizers_have_slots_which_returns_an_int;
inline constexpr reason optimizers_have_learning_rate_a_learning_rate_schedule;
inline constexpr reason optimizers_have_weight_decay_clipnorm_clipvalue_and_global_clipnorm;
inline constexpr reason optimizers_have_validate_which_throws_for_wrong_settings;
inline constexpr reason optimizers_have_with_rule_of_a_step_a_rate_and_a_function;
}  // namespace reasons

namespace detail {
struct takes_any_rule {
  void operator()(const auto&) const {}
};
template <class O>
auto requirements_of_optimizer() {
  if constexpr (!requires {
                  { O::name } -> std::convertible_to<const char*>;
                })
    return lacks<O, reasons::optimizers_have_a_name>{};
  else if constexpr (!requires(const O& o) {
                       { o.slots() } -> std::same_as<int>;
                     })
    return lacks<O, reasons::optimizers_have_slots_which_returns_an_int>{};
  else if constexpr (!requires(const O& o) {
                       { o.learning_rate } -> std::convertible_to<learning_rate_schedule>;
                     })
    return lacks<O, reasons::optimizers_have_learning_rate_a_learning_rate_schedule>{};
  else if constexpr (!requires(const O& o) { o.validate(); })
    return lacks<O, reasons::optimizers_have_validate_which_throws_for_wrong_settings>{};
  else if constexpr (!requires(const O& o) {
                       o.template with_rule<float>(0L, 0.1, takes_any_rule{});
                       o.template with_rule<double>(0L, 0.1, takes_any_rule{});
                     })
    return lacks<O, reasons::optimizers_have_with_rule_of_a_step_a_rate_and_a_function>{};
  else if constexpr (!requires(const O& o) {
                       { o.weight_decay } -> std::convertible_to<double>;
                       { o.clipnorm } -> std::convertible_to<double>;
                       { o.clipvalue } -> std::convertible_to<double>;
                       { o.global_clipnorm } -> std::convertible_to<double>;
                     })
    return lacks<O, reasons::optimizers_have_weight_decay_clipnorm_clipvalue_and_global_clipnorm>{};
  else if constexpr (!std::copy_constructible<O>)
    return lacks<O, reasons::optimizers_are_copyable>{};
  else
    return no_complaint{};
}
/// no_complaint, or the first requirement that an optimizer does not meet.
template <class O>
using optimizer_verdict = decltype(requirements_of_optimizer<O>());
}  // namespace detail

namespace core {
/// Members (names and meaning as in Keras; 0 switches the last four off):
///   `learning_rate`   a learning_rate_schedule
///   `weight_decay`, `clipnorm`, `clipvalue`, `global_clipnorm`
///   `slots()`         the number of arenas of state (momentum, ...) beside the weights; they start at zero
///   `validate()`      throws strata_error for wrong settings
///   `with_rule<T>(step, rate, f)`  calls f(rule) with the optimizer_rule of this step (from 0), which takes all slots
///   `settings()`      optional: its further settings as a range of optimizer_setting; they must be the same in all processes
///   `needs_norms()`   optional: true if the rule is a parameterwise_rule or a factored_rule
///   `traits`          optional: optimizer_traits
/// Clipping and decoupled weight decay precede the rule; the engine applies them.
template <class O>
concept optimizer = std::same_as<detail::optimizer_verdict<O>, detail::no_complaint>;

/// Throws strata_error for wrong settings, and for a rule whose number of slots differs from that of the optimizer.
template <class T, optimizer O>
void validate(const O& o) {
  o.validate();
  o.template with_rule<T>(0L, 0.1, [&]<class Rule>(const Rule&) {
    if (Rule::slots != o.slots())
      throw_error({O::name, ": slots() is ", o.slots(), ", but its rule takes ", Rule::slots, " arrays of state"});
  });
}

/// Whether the optimizer may have a parameterwise_rule or a factored_rule.
template <class O>
concept norm_optimizer = requires(const O& o) {
  { o.needs_norms() } -> std::same_as<bool>;
};

/// Whether the rule of an optimizer needs norms of whole parameters, regardless of clipping.
template <optimizer O>
constexpr bool needs_norms(const O& o) {
  if constexpr (norm_optimizer<O>) return o.needs_norms();
  return false;
}

/// Whether an update with these settings needs norms of whole parameters. It then takes several passes over all elements.
template <optimizer O>
constexpr bool takes_norms(const O& o) {
  return needs_norms(o) || o.clipnorm > 0 || o.global_clipnorm > 0;
}
}  // namespace core

}  // namespace strata
