// The root of the mean squared error of all elements.
#pragma once
#include <cmath>
#include <span>
#include <strata/base/rounded.hpp>

namespace strata {

/// https://keras.io/api/metrics/regression_metrics/#rootmeansquarederror-class
struct root_mean_squared_error {
  static constexpr auto name = "root_mean_squared_error";

  /// The sum of squared errors, and their number.
  static constexpr std::size_t sums(int) { return 2; }

  template <class T>
  static constexpr void add(std::span<const T> prediction, std::span<const T> truth, std::span<double> to) {
    for (std::size_t i = 0; i < prediction.size(); ++i) {
      const double error = double(prediction[i]) - double(truth[i]);
      to[0] += detail::rounded(error * error), to[1] += 1;
    }
  }
  static double result(std::span<const double> sums) { return sums[1] > 0 ? std::sqrt(sums[0] / sums[1]) : 0; }
};

}  // namespace strata
