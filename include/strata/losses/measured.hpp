// Makes a loss usable as a metric.
#pragma once

namespace strata::detail {

/// Base of losses. As a metric, a loss measures its value for one sample.
template <class Loss>
struct measured {
  // L instead of Loss: clang 14 would look into Loss while it is incomplete.
  template <class Prediction, class Truth, class L = Loss>
    requires requires(Prediction prediction, Truth truth) { L::value(prediction, truth); }
  static constexpr double measure(Prediction prediction, Truth truth) {
    return static_cast<double>(L::value(prediction, truth));
  }
};

}  // namespace strata::detail
