// The loss of an output of a graph that is compared with nothing.
#pragma once
#include <span>
#include <strata/concepts/loss.hpp>

namespace strata::detail {

/// The loss of an output that is only predicted: 0, and so is its gradient.
struct predicted_only {
  static constexpr auto name = "predicted_only";
  static constexpr label_kind labels = label_kind::none;
  static constexpr expected_shape output_shape(shape in) { return in; }
  template <class T>
  static constexpr T value(std::span<const T>, no_truth) {
    return T(0);
  }
  template <class T>
  static constexpr void gradient(std::span<const T>, no_truth, std::span<T> dx) {
    for (T& each : dx) each = 0;
  }
};

}  // namespace strata::detail
