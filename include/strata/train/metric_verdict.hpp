// Diagnostics for metrics that do not fit a loss or a network.
#pragma once
#include <strata/base/meta.hpp>
#include <strata/base/reason.hpp>
#include <strata/concepts/metric.hpp>
#include <strata/concepts/operation.hpp>
#include <strata/train/argument_verdict.hpp>
#include <string_view>
#include <type_traits>

namespace strata {

namespace core {
// The words of the diagnostics. None is ever defined: the type name is the error message.
template <class Metric, label_kind Kind>
struct metric_does_not_go_with_labels;
}  // namespace core

namespace reasons {
inline constexpr reason a_metric_has_a_name_that_is_not_epoch_batch_learning_rate_steps_per_second_or_val_something{
    "a metric has a name of one line that is not epoch, batch, learning_rate or steps_per_second and does not begin with val_"};
}  // namespace reasons

namespace detail {

/// Whether the name of a metric is free: not used by another value in logs, columns of CSV files, curves and file names.
template <class M>
constexpr bool has_free_name() {
  const std::string_view name = M::name;
  for (const char* taken : {"", "epoch", "batch", "learning_rate", "steps_per_second"})
    if (name == taken) return false;
  return !name.starts_with("val_") && name.find('\n') == name.npos;
}

template <label_kind Kind>
struct unfit_for {
  template <class M>
  struct predicate : std::true_type {};
  template <measures<Kind> M>
  struct predicate<M> : std::bool_constant<!has_free_name<M>()> {};
};
template <label_kind Kind, class Unfit>
struct metric_verdict {
  using type = no_complaint;
};
template <label_kind Kind, class First, class... More>
struct metric_verdict<Kind, type_list<First, More...>> {
  using type = metric_does_not_go_with_labels<First, Kind>;
};
template <label_kind Kind, measures<Kind> First, class... More>
struct metric_verdict<Kind, type_list<First, More...>>
    : argument_verdict<type_list<First>,
                       reasons::a_metric_has_a_name_that_is_not_epoch_batch_learning_rate_steps_per_second_or_val_something> {};
template <label_kind Kind, class First, class... More>
  requires(!metric<First>)
struct metric_verdict<Kind, type_list<First, More...>>
    : lacks<First, named<First> ? reasons::metrics_have_measure_of_a_prediction_and_its_label : reasons::metrics_have_a_name> {};
template <label_kind Kind, class... M>
auto metrics_unfit_for(type_list<M...>) -> filter_t<unfit_for<Kind>::template predicate, M...>;

/// Selects metrics whose settings are invalid for this number of predictions: `refusal(predictions)` returns the reason, or null.
template <int Predictions>
struct refused_for {
  template <class M>
  struct predicate : std::false_type {};
  template <class M>
    requires requires { M::refusal(Predictions); }
  struct predicate<M> : std::bool_constant<M::refusal(Predictions) != nullptr> {};
};
template <int Predictions, class Refused>
struct metric_refusal {
  using type = no_complaint;
};
template <int Predictions, class First, class... More>
struct metric_refusal<Predictions, type_list<First, More...>> {
  using type = wrong_argument<First, because<*First::refusal(Predictions)>>;
};
template <int Predictions, class... M>
auto metrics_refused_for(type_list<M...>) -> filter_t<refused_for<Predictions>::template predicate, M...>;

}  // namespace detail

}  // namespace strata
