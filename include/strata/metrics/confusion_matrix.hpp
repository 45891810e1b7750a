// The number of samples for each pair of true and predicted class.
#pragma once
#include <strata/metrics/categorical_accuracy.hpp>
#include <strata/metrics/options.hpp>

namespace strata {

/// A row for each true class and a column for each predicted one: logs::array("confusion_matrix") is row after row. The predicted
/// class is that of the largest prediction. A network with one output has two classes; 1 is predicted above Threshold. A sample
/// with a prediction that is nan is in no column.
/// https://www.tensorflow.org/api_docs/python/tf/math/confusion_matrix
template <core::decimal Threshold = core::decimal(5, -1)>
struct confusion_matrix {
  static constexpr auto name = "confusion_matrix";

  static constexpr std::size_t sums(int predictions) { return values(predictions); }
  static constexpr std::size_t values(int predictions) {
    return classes(std::size_t(predictions)) * classes(std::size_t(predictions));
  }

  template <class T>
  static constexpr void add(std::span<const T> prediction, std::int32_t label, std::span<double> to) {
    int predicted = detail::predicted_class(prediction);
    if (predicted < 0) return;
    if (prediction.size() == 1) predicted = prediction[0] > T(Threshold.value());
    to[std::size_t(label) * classes(prediction.size()) + std::size_t(predicted)] += 1;
  }
  template <class T>
  static constexpr void add(std::span<const T> prediction, std::span<const T> truth, std::span<double> to) {
    add(prediction, truth.size() == 1 ? int(truth[0] > T(0.5)) : detail::position_of_largest(truth), to);
  }

  static constexpr void results(std::span<const double> sums, std::span<double> matrix) {
    for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = sums[i];
  }

 private:
  static constexpr std::size_t classes(std::size_t predictions) { return predictions == 1 ? 2 : predictions; }
};

}  // namespace strata
