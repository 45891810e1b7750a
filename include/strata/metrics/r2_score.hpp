// The share of the variance of the truth that the predictions explain.
#pragma once
#include <cmath>
#include <span>
#include <strata/base/rounded.hpp>

namespace strata {

/// The mean over the outputs of 1 - sum of (truth - prediction)^2 / sum of (truth - its mean)^2. 1 is perfect, 0 is as good as
/// the mean. An output with constant truth counts as 0. A prediction that is infinite makes it minus infinity (in Keras 0).
/// https://keras.io/api/metrics/regression_metrics/#r2score-class
struct r2_score {
  static constexpr auto name = "r2_score";

  /// The number of samples; then for each output the sums of the upper and of the lower half of the digits of the truth, those of
  /// its square, and the sum of the squared error.
  static constexpr std::size_t sums(int predictions) { return 1 + 5 * std::size_t(predictions); }

  template <class T>
  static constexpr void add(std::span<const T> prediction, std::span<const T> truth, std::span<double> to) {
    to[0] += 1;
    for (std::size_t i = 0; i < prediction.size(); ++i) {
      const double t = double(truth[i]), error = double(prediction[i]) - t;
      const double upper = upper_half(t), lower = t - upper;
      const double square = detail::rounded(upper * upper), upper_square = upper_half(square);  // both are exact
      const double lower_square = (square - upper_square) + detail::rounded((upper + t) * lower);
      double* const of = &to[1 + 5 * i];
      of[0] += upper, of[1] += lower, of[2] += upper_square, of[3] += lower_square;
      of[4] += detail::rounded(error * error);
    }
  }
  static double result(std::span<const double> sums) {
    double scores = 0;
    const std::size_t outputs = (sums.size() - 1) / 5;
    for (std::size_t i = 0; i < outputs && sums[0] > 0; ++i) {
      const double *of = &sums[1 + 5 * i], variance = variance_of(of, sums[0]), error = of[4];
      scores += variance <= 0 && error == error ? 0 : 1 - error / variance;
    }
    return scores / double(outputs);
  }

 private:
  /// x rounded to 26 binary digits. Sums of such numbers of like size are exact (Veltkamp 1968).
  static constexpr double upper_half(double x) {
    const double c = detail::rounded(x * 134217729.);  // 2^27 + 1
    return c - (c - x);
  }
  /// The sum of (truth - its mean)^2, computed as (n * sum of squares - square of the sum) / n. If the mean is large, these two
  /// are nearly equal, so they are computed with more digits than a double has.
  static double variance_of(const double* of, double n) {
    const double squares = detail::rounded(n * of[2]), square = detail::rounded(of[0] * of[0]);
    const double digits = std::fma(n, of[2], -squares) - std::fma(of[0], of[0], -square);
    const double lower = detail::rounded(n * of[3]) - detail::rounded(of[1] * (of[0] + (of[0] + of[1])));
    return ((squares - square) + (digits + lower)) / n;
  }
};

}  // namespace strata
