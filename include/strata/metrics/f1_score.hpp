// The harmonic mean of precision and recall.
#pragma once
#include <strata/base/rounded.hpp>
#include <strata/metrics/categorical_accuracy.hpp>
#include <strata/metrics/options.hpp>

namespace strata {

namespace core {
enum class averaging { none, micro, macro, weighted };

struct f1_settings {
  decimal threshold{};
  bool has_threshold = false;
  averaging average = averaging::none;
};
}  // namespace core

namespace detail {
template <averaging How>
struct average_option {
  static constexpr void configure(auto& settings)
    requires requires { settings.average; }
  {
    settings.average = How;
  }
};
}  // namespace detail

/// One score from the counts of all classes together.
struct micro_average : detail::average_option<core::averaging::micro> {};
/// The mean of the scores of all classes.
struct macro_average : detail::average_option<core::averaging::macro> {};
/// The mean of the scores of all classes, weighted by their numbers of samples.
struct weighted_average : detail::average_option<core::averaging::weighted> {};

/// 2 precision recall / (precision + recall) of each class, which is predicted where its prediction is the largest or, with
/// `threshold`, greater than that; where one is nan, none is the largest. Options: threshold, and micro_average, macro_average or
/// weighted_average. Without an average there is a score per class: logs::array("f1_score").
/// https://keras.io/api/metrics/f_score_metrics/#f1score-class
template <class... Options>
struct f1_score : detail::metric_options<core::f1_settings, Options...> {
  static constexpr auto name = "f1_score";
  static constexpr core::averaging average = f1_score::settings.average;

  /// True positives, false positives and false negatives of each class.
  static constexpr std::size_t sums(int predictions) { return 3 * std::size_t(predictions); }

  template <class T, class Truth>
  static constexpr void add(std::span<const T> prediction, Truth truth, std::span<double> to)
    requires requires { detail::truth_of_element(truth, prediction, 0); }
  {
    const int largest = detail::predicted_class(prediction);
    for (std::size_t i = 0; i < prediction.size(); ++i) {
      const T p = prediction[i], size = p < 0 ? -p : p;
      const bool yes = f1_score::settings.has_threshold
                           ? p > T(f1_score::settings.threshold.value())
                           : largest >= 0 && p >= prediction[std::size_t(largest)] && size > T(1e-9);  // as Keras: 0 is none
      const bool is = detail::truth_of_element(truth, prediction, i) != 0;
      to[3 * i] += yes && is ? 1 : 0, to[3 * i + 1] += yes && !is ? 1 : 0, to[3 * i + 2] += !yes && is ? 1 : 0;
    }
  }

  static constexpr double result(std::span<const double> sums)
    requires(average != core::averaging::none)
  {
    const std::size_t classes = sums.size() / 3;
    double tp = 0, fp = 0, fn = 0, scores = 0, weights = 0;
    for (std::size_t i = 0; i < classes; ++i) {
      const double *of = &sums[3 * i], weight = average == core::averaging::weighted ? of[0] + of[2] : 1;
      tp += of[0], fp += of[1], fn += of[2];
      scores += detail::rounded(weight * score(of[0], of[1], of[2])), weights += weight;
    }
    return average == core::averaging::micro ? score(tp, fp, fn) : detail::fraction_of(scores, weights);
  }

  static constexpr std::size_t values(int predictions)
    requires(average == core::averaging::none)
  {
    return std::size_t(predictions);
  }
  static constexpr void results(std::span<const double> sums, std::span<double> scores)
    requires(average == core::averaging::none)
  {
    for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = score(sums[3 * i], sums[3 * i + 1], sums[3 * i + 2]);
  }

 private:
  static constexpr double score(double tp, double fp, double fn) { return detail::fraction_of(2 * tp, 2 * tp + fp + fn); }
};

}  // namespace strata
