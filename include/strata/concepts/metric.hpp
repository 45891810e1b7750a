// A metric says what one prediction adds to its sum.
#pragma once
#include <concepts>
#include <cstdint>
#include <span>
#include <strata/base/reason.hpp>
#include <strata/concepts/batch_source.hpp>

namespace strata {

/// The sum of a metric over samples, and the number of samples. Only the mean over the global batch is reported.
struct metric_sum {
  double sum = 0, count = 0;
  constexpr double mean() const { return count > 0 ? sum / count : 0; }
  constexpr metric_sum& operator+=(metric_sum other) {
    sum += other.sum, count += other.count;
    return *this;
  }
};

namespace detail {
template <class M, class Truth>
concept has_measure = requires(std::span<const double> prediction, Truth truth) {
  { M::measure(prediction, truth) } -> std::convertible_to<double>;
};
template <class M, class Truth>
concept measures_against = requires {
  { M::name } -> std::convertible_to<const char*>;
} && has_measure<M, Truth>;
}  // namespace detail

///   `name`
///   `measure(prediction, truth) -> double`   of one sample. prediction: std::span<const T>; truth: a std::int32_t (sparse
///                                            labels), a std::span<const T> (dense ones), or an overload for each
/// Losses are metrics, too.
template <class M>
concept metric = detail::measures_against<M, std::int32_t> || detail::measures_against<M, std::span<const double>>;

inline constexpr reason metrics_have_a_name{"a metric has a static member name"};
inline constexpr reason metrics_have_measure_of_a_prediction_and_its_label{
    "a metric has measure(prediction, truth), where truth is a std::int32_t or a std::span, which returns a number"};

/// Whether a metric goes with the labels that the loss takes.
template <class M, label_kind Kind>
concept measures = metric<M> && ((Kind == label_kind::sparse && detail::measures_against<M, std::int32_t>) ||
                                 (Kind == label_kind::dense && detail::measures_against<M, std::span<const double>>));

}  // namespace strata
