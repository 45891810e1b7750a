// A metric defines the contribution of one prediction to its sum.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <strata/base/reason.hpp>
#include <strata/concepts/batch_source.hpp>

namespace strata {

namespace core {
/// The sum of a metric over samples, and the number of samples. Only the mean over the global batch is reported.
struct metric_sum {
  double sum = 0, count = 0;
  constexpr double mean() const { return count > 0 ? sum / count : 0; }
  constexpr metric_sum& operator+=(metric_sum other) {
    sum += other.sum, count += other.count;
    return *this;
  }
};

/// The rank of the prediction for the sample's class among the predictions.
struct place_of_class {
  long greater = 0;          // predictions that are greater
  long not_less_before = 0;  // predictions for classes before it that are not less
  bool is_finite = true;     // whether the prediction itself is finite

  /// The value if a prediction is nan, or if the label is outside the classes.
  static constexpr place_of_class none() {
    constexpr long more_than_there_are = 1L << 30;  // a power of two, which each number type holds
    return {more_than_there_are, more_than_there_are, false};
  }
};
}  // namespace core

namespace detail {
template <class M, class Truth>
concept has_measure = requires(std::span<const double> prediction, Truth truth) {
  { M::measure(prediction, truth) } -> std::convertible_to<double>;
};
template <class M, class Truth>
concept has_add = requires(std::span<const double> prediction, Truth truth, std::span<double> sums) {
  { M::sums(1) } -> std::convertible_to<std::size_t>;
  M::add(prediction, truth, sums);
};
template <class M>
concept has_result = requires(std::span<const double> sums) {
  { M::result(sums) } -> std::convertible_to<double>;
};
template <class M>
concept has_results = requires(std::span<const double> sums, std::span<double> values) {
  { M::values(1) } -> std::convertible_to<std::size_t>;
  M::results(sums, values);
};
template <class M, class Truth>
concept measures_against = requires {
  { M::name } -> std::convertible_to<const char*>;
} && (has_measure<M, Truth> || (has_add<M, Truth> && (has_result<M> || has_results<M>)));
}  // namespace detail

namespace core {
///   `name`
///   `measure(prediction, truth) -> double`   of one sample. prediction: std::span<const T>; truth: a std::int32_t (sparse
///                                            labels), a std::span<const T> (dense ones), or an overload for each
/// or, if a mean over samples is not enough, as for several counts,
///   `sums(predictions)`           the number of its totals, for so many predictions per sample
///   `add(prediction, truth, sums)`  adds one sample; sums: a std::span<double>
///   `result(sums) -> double`      the reported value; or, for several values, which are not in the history,
///   `values(predictions)`, `results(sums, values)`   their number, and the values; values: a std::span<double>
/// and perhaps
///   `refusal(predictions)`        the reason why it is invalid for so many: a const reason*, or null
///   `measure_place(place_of_class) -> double`   the same as measure, if that depends on nothing else: all that is available to
///                                               ranks that have a part of the classes each (by_classes)
/// Totals are added over leaves and processes in a fixed order, so they have the same bits in every strategy.
/// Losses are metrics, too.
template <class M>
concept metric = detail::measures_against<M, std::int32_t> || detail::measures_against<M, std::span<const double>>;
}  // namespace core

namespace detail {
/// Whether a metric accumulates totals of its own, rather than a value and a count.
template <class M>
concept adds_several = !has_measure<M, std::int32_t> && !has_measure<M, std::span<const double>>;

template <class M>
concept measures_places = requires(place_of_class p) {
  { M::measure_place(p) } -> std::convertible_to<double>;
};

/// The number of metric sums that hold the totals of M for so many predictions per sample.
template <class M>
constexpr std::size_t pairs_of_sums(int predictions) {
  if constexpr (adds_several<M>)
    return (std::size_t(M::sums(predictions)) + 1) / 2;
  else
    return 1;
}
}  // namespace detail

namespace reasons {
inline constexpr reason metrics_have_a_name{"a metric has a static member name"};
inline constexpr reason metrics_have_measure_of_a_prediction_and_its_label{
    "a metric has measure(prediction, truth), where truth is a std::int32_t or a std::span, which returns a number"};
}  // namespace reasons

namespace core {
/// Whether a metric accepts the labels that the loss takes.
template <class M, label_kind Kind>
concept measures = metric<M> && ((Kind == label_kind::sparse && detail::measures_against<M, std::int32_t>) ||
                                 (Kind == label_kind::dense && detail::measures_against<M, std::span<const double>>));
}  // namespace core

}  // namespace strata
