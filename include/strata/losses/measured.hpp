// A loss can be shown as a metric, too.
#pragma once

namespace strata::detail {

/// Base of losses: what they measure of one sample is their value.
template <class Loss>
struct measured {
  // L, since clang 14 would look into Loss while it is incomplete.
  template <class Prediction, class Truth, class L = Loss>
    requires requires(Prediction prediction, Truth truth) { L::value(prediction, truth); }
  static constexpr double measure(Prediction prediction, Truth truth) {
    return static_cast<double>(L::value(prediction, truth));
  }
};

}  // namespace strata::detail
