// The share of predictions on the right side of a threshold.
#pragma once
#include <span>
#include <strata/base/decimal.hpp>

namespace strata {

/// For each sample, the share of elements for which (prediction > Threshold) equals the label, 0 or 1. The threshold itself is 0.
/// A prediction that is nan counts as wrong. (Keras treats it as 0.)
/// https://keras.io/api/metrics/accuracy_metrics/#binaryaccuracy-class
template <core::decimal Threshold = core::decimal(5, -1)>
struct binary_accuracy {
  static constexpr auto name = "binary_accuracy";

  template <class T>
  static constexpr double measure(std::span<const T> prediction, std::span<const T> truth) {
    const T limit = static_cast<T>(Threshold.value());
    int right = 0;
    for (std::size_t i = 0; i < prediction.size(); ++i) {
      const T p = prediction[i];
      right += (p > limit ? T(1) : p <= limit ? T(0) : p) == truth[i] ? 1 : 0;
    }
    return static_cast<double>(right) / static_cast<double>(prediction.size());
  }
};

}  // namespace strata
