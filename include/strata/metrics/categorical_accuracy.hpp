// The share of samples whose largest prediction is that of the right class.
#pragma once
#include <cstdint>
#include <span>
#include <strata/concepts/metric.hpp>

namespace strata {

namespace detail {
/// The index of the largest value; the first of equal ones.
template <class T>
constexpr int position_of_largest(std::span<const T> values) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < values.size(); ++i)
    if (values[i] > values[best]) best = i;
  return static_cast<int>(best);
}

/// The class of the largest prediction; -1 if one of them is nan.
template <class T>
constexpr int predicted_class(std::span<const T> prediction) {
  for (const T p : prediction)
    if (p != p) return -1;
  return position_of_largest(prediction);
}
}  // namespace detail

/// A sample with a prediction that is nan counts as wrong. (Keras takes the first nan for the largest prediction.)
/// https://keras.io/api/metrics/accuracy_metrics/#sparsecategoricalaccuracy-class
struct sparse_categorical_accuracy {
  static constexpr auto name = "sparse_categorical_accuracy";

  template <class T>
  static constexpr double measure(std::span<const T> prediction, std::int32_t label) {
    const int predicted = detail::predicted_class(prediction);
    return predicted >= 0 && predicted == label ? 1 : 0;
  }
  static constexpr double measure_place(core::place_of_class p) { return p.greater == 0 && p.not_less_before == 0 ? 1 : 0; }
};

/// The same for one-hot labels; the class is the index of the largest label.
/// https://keras.io/api/metrics/accuracy_metrics/#categoricalaccuracy-class
struct categorical_accuracy {
  static constexpr auto name = "categorical_accuracy";

  template <class T>
  static constexpr double measure(std::span<const T> prediction, std::span<const T> truth) {
    return sparse_categorical_accuracy::measure(prediction, detail::position_of_largest(truth));
  }
  static constexpr double measure_place(core::place_of_class p) { return sparse_categorical_accuracy::measure_place(p); }
};

}  // namespace strata
