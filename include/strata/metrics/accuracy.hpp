// The share of right predictions, for any kind of labels.
#pragma once
#include <strata/metrics/binary_accuracy.hpp>
#include <strata/metrics/categorical_accuracy.hpp>

namespace strata {

/// binary_accuracy for one prediction per sample; else sparse_categorical_accuracy or categorical_accuracy, depending on the
/// labels. This is the meaning of "accuracy" in Keras' compile.
struct accuracy {
  static constexpr auto name = "accuracy";

  template <class T>
  static constexpr double measure(std::span<const T> prediction, std::int32_t label) {
    if (prediction.size() > 1) return sparse_categorical_accuracy::measure(prediction, label);
    const T truth = static_cast<T>(label);
    return binary_accuracy<>::measure(prediction, std::span<const T>(&truth, 1));
  }
  template <class T>
  static constexpr double measure(std::span<const T> prediction, std::span<const T> truth) {
    return prediction.size() > 1 ? categorical_accuracy::measure(prediction, truth)
                                 : binary_accuracy<>::measure(prediction, truth);
  }
  static constexpr double measure_place(core::place_of_class p) { return categorical_accuracy::measure_place(p); }
};

}  // namespace strata
