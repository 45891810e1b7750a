// Counts of right and wrong yes-or-no predictions, and the quotients of these.
#pragma once
#include <limits>
#include <strata/base/reason.hpp>
#include <strata/metrics/options.hpp>

namespace strata {

namespace core {
struct confusion_settings {
  decimal threshold{5, -1};
  bool has_threshold = false;
  int top_k = 0, class_id = -1;

  /// The value that a positive prediction exceeds. With top_k and without a threshold, there is no such limit.
  constexpr double limit() const {
    return top_k > 0 && !has_threshold ? -std::numeric_limits<double>::infinity() : threshold.value();
  }
};
}  // namespace core

namespace reasons {
inline constexpr reason class_id_must_be_less_than_the_number_of_predictions{
    "class_id must be less than the number of predictions of a sample"};
}  // namespace reasons

namespace detail {
enum class confusion { true_positive, false_positive, true_negative, false_negative };

/// Base of metrics of yes-or-no predictions: `Metric::count(what, sums)` for each element of a sample, or that of class_id.
template <class Metric, std::size_t Sums, class... Options>
struct of_confusion : metric_options<confusion_settings, Options...> {
  static constexpr std::size_t sums(int) { return Sums; }
  static constexpr const reason* refusal(int predictions) {
    return predictions > of_confusion::settings.class_id ? nullptr
                                                         : &reasons::class_id_must_be_less_than_the_number_of_predictions;
  }

  template <class T, class Truth>
  static constexpr void add(std::span<const T> prediction, Truth truth, std::span<double> to)
    requires requires { truth_of_element(truth, prediction, 0); }
  {
    constexpr confusion_settings s = of_confusion::settings;
    const std::size_t first = 0 > s.class_id ? 0 : std::size_t(s.class_id);
    const std::size_t end = 0 > s.class_id ? prediction.size() : first + 1;
    for (std::size_t i = first; i < end; ++i) {
      const bool yes = prediction[i] > T(s.limit()) && (s.top_k == 0 || is_among_largest(prediction, i, s.top_k));
      const bool right = yes == (truth_of_element(truth, prediction, i) != 0);
      Metric::count(yes ? (right ? confusion::true_positive : confusion::false_positive)
                        : (right ? confusion::true_negative : confusion::false_negative),
                    to);
    }
  }
};

template <class Metric, confusion What, class... Options>
struct count_of : of_confusion<Metric, 1, Options...> {
  static constexpr void count(confusion what, std::span<double> to) { to[0] += what == What ? 1 : 0; }
  static constexpr double result(std::span<const double> sums) { return sums[0]; }
};

/// True positives as a share of true positives and Others. 0 if there are none of either.
template <class Metric, confusion Others, class... Options>
struct share_of_true_positives : of_confusion<Metric, 2, Options...> {
  static constexpr void count(confusion what, std::span<double> to) {
    if (what == confusion::true_positive) to[0] += 1;
    if (what == confusion::true_positive || what == Others) to[1] += 1;
  }
  static constexpr double result(std::span<const double> sums) { return fraction_of(sums[0], sums[1]); }
};
}  // namespace detail

/// The number of predictions greater than the threshold whose truth is not 0. A prediction that is nan is not greater, as in
/// Keras. Options of this metric and those below: threshold 0.5, class_id, top_k.
/// https://keras.io/api/metrics/classification_metrics/#truepositives-class
template <class... Options>
struct true_positives : detail::count_of<true_positives<Options...>, detail::confusion::true_positive, Options...> {
  static constexpr auto name = "true_positives";
};
/// https://keras.io/api/metrics/classification_metrics/#falsepositives-class
template <class... Options>
struct false_positives : detail::count_of<false_positives<Options...>, detail::confusion::false_positive, Options...> {
  static constexpr auto name = "false_positives";
};
/// https://keras.io/api/metrics/classification_metrics/#truenegatives-class
template <class... Options>
struct true_negatives : detail::count_of<true_negatives<Options...>, detail::confusion::true_negative, Options...> {
  static constexpr auto name = "true_negatives";
};
/// https://keras.io/api/metrics/classification_metrics/#falsenegatives-class
template <class... Options>
struct false_negatives : detail::count_of<false_negatives<Options...>, detail::confusion::false_negative, Options...> {
  static constexpr auto name = "false_negatives";
};

/// The share of the positive predictions that are right: Keras' Precision. `precision` is the namespace of f32, f64, mixed_bf16.
/// https://keras.io/api/metrics/classification_metrics/#precision-class
template <class... Options>
struct precision_score
    : detail::share_of_true_positives<precision_score<Options...>, detail::confusion::false_positive, Options...> {
  static constexpr auto name = "precision";
};
/// The share of the positive elements that are predicted.  https://keras.io/api/metrics/classification_metrics/#recall-class
template <class... Options>
struct recall : detail::share_of_true_positives<recall<Options...>, detail::confusion::false_negative, Options...> {
  static constexpr auto name = "recall";
};

}  // namespace strata
