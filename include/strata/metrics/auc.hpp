// The area under the ROC or the precision-recall curve.
#pragma once
#include <cmath>
#include <strata/base/rounded.hpp>
#include <strata/metrics/options.hpp>

namespace strata {

namespace core {
struct auc_settings {
  int num_thresholds = 200;
  bool pr = false, from_logits = false;
};
}  // namespace core

template <int N>
struct num_thresholds {
  static_assert(N >= 2, "num_thresholds needs at least 2");
  static constexpr void configure(auto& settings)
    requires requires { settings.num_thresholds; }
  {
    settings.num_thresholds = N;
  }
};

/// The curve of precision against recall, instead of the ROC curve.
struct pr_curve {
  static constexpr void configure(auto& settings)
    requires requires { settings.pr; }
  {
    settings.pr = true;
  }
};

/// The area under the ROC curve or, with pr_curve, under that of precision against recall, for all elements of the samples.
/// Predictions are probabilities. Options: num_thresholds 200, pr_curve, from_logits. Between two thresholds the ROC curve is
/// straight; the other is interpolated as in Davis and Goadrich 2006.
/// https://keras.io/api/metrics/classification_metrics/#auc-class
template <class... Options>
struct auc : detail::metric_options<core::auc_settings, Options...> {
  static constexpr auto name = "auc";
  static constexpr int thresholds = auc::settings.num_thresholds;

  /// For each interval between two thresholds, the number of predictions of class 1 in it, then that of class 0.
  static constexpr std::size_t sums(int) { return 2 * std::size_t(thresholds); }

  template <class T, class Truth>
  static constexpr void add(std::span<const T> prediction, Truth truth, std::span<double> to)
    requires requires { detail::truth_of_element(truth, prediction, 0); }
  {
    for (std::size_t i = 0; i < prediction.size(); ++i) {
      const bool one = detail::truth_of_element(truth, prediction, i) != 0;
      to[(one ? 0 : std::size_t(thresholds)) + interval_of(prediction[i])] += 1;
    }
  }

  static double result(std::span<const double> sums) {
    double positives = 0, negatives = 0;
    for (int i = 0; i < thresholds; ++i) positives += ones(sums, i), negatives += zeros(sums, i);
    // From the highest threshold down: tp and fp count the predictions of either class above it.
    double area = 0, tp = 0, fp = 0;
    for (int i = thresholds - 1; i >= 0; --i) {
      const double right = ones(sums, i), wrong = zeros(sums, i);
      if (i < thresholds - 1)
        area += auc::settings.pr ? detail::fraction_of(under_precision(tp, tp + fp, right, wrong), positives)
                                 : detail::fraction_of(under_roc(tp, right, wrong), positives * negatives);
      tp += right, fp += wrong;
    }
    return area;
  }

 private:
  static double ones(std::span<const double> sums, int i) { return sums[std::size_t(i)]; }
  static double zeros(std::span<const double> sums, int i) { return sums[std::size_t(thresholds + i)]; }

  /// The area between two thresholds: tp ones lie above both, `right` ones and `wrong` zeros between them.
  static double under_roc(double tp, double right, double wrong) { return wrong * (tp + right / 2); }
  /// predicted: the number of predictions of either class above both.
  static double under_precision(double tp, double predicted, double right, double wrong) {
    const double slope = detail::fraction_of(right, right + wrong), all = predicted + right + wrong;
    const double start = tp - detail::rounded(slope * predicted);
    const double curved = predicted > 0 && all > 0 ? start * std::log(all / predicted) : 0;
    return slope * (right + detail::rounded(curved));
  }

  /// A prediction in interval i is greater than thresholds 0 to i, of 0, 1 / (thresholds - 1), ... 1. nan is in interval 0.
  template <class T>
  static constexpr std::size_t interval_of(T prediction) {
    if constexpr (auc::settings.from_logits) prediction = 1 / (1 + std::exp(-prediction));
    const T last = T(thresholds - 1), above = std::ceil(prediction * last) - 1;
    return above > 0 ? std::size_t(above < last ? above : last) : 0;
  }
};

}  // namespace strata
