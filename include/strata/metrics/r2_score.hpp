// The share of the variance of the truth that the predictions explain.
#pragma once
#include <cmath>
#include <span>
#include <strata/base/rounded.hpp>

namespace strata {

/// The mean over the outputs of 1 - sum of (truth - prediction)^2 / sum of (truth - its mean)^2. 1 is perfect, 0 is as good as
/// the mean. An output whose truth never changes counts as 0.  https://keras.io/api/metrics/regression_metrics/#r2score-class
struct r2_score {
  static constexpr auto name = "r2_score";

  /// The number of samples; then for each output the sum of the truth, of its square and of the squared error.
  static constexpr std::size_t sums(int predictions) { return 1 + 3 * std::size_t(predictions); }

  template <class T>
  static constexpr void add(std::span<const T> prediction, std::span<const T> truth, std::span<double> to) {
    to[0] += 1;
    for (std::size_t i = 0; i < prediction.size(); ++i) {
      const double t = double(truth[i]), error = double(prediction[i]) - t;
      to[1 + 3 * i] += t, to[2 + 3 * i] += detail::rounded(t * t), to[3 + 3 * i] += detail::rounded(error * error);
    }
  }
  static constexpr double result(std::span<const double> sums) {
    double scores = 0;
    const std::size_t outputs = (sums.size() - 1) / 3;
    for (std::size_t i = 0; i < outputs && sums[0] > 0; ++i) {
      const double* of = &sums[1 + 3 * i];
      const double variance = of[1] - detail::rounded(of[0] * (of[0] / sums[0]));
      scores += variance > 0 ? 1 - of[2] / variance : 0;
    }
    return scores / double(outputs);
  }
};

}  // namespace strata
