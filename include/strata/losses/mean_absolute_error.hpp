// prediction: any shape  truth: the same
#pragma once
#include <span>
#include <strata/base/shape.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/concepts/operation.hpp>
#include <strata/losses/measured.hpp>

namespace strata {

/// Mean over the elements of |prediction - truth|. The gradient is 0 where they are equal.
/// https://keras.io/api/losses/regression_losses/#meanabsoluteerror-class
struct mean_absolute_error : detail::measured<mean_absolute_error> {
  static constexpr auto name = "mean_absolute_error";
  static constexpr label_kind labels = label_kind::dense;
  static constexpr core::operation_traits traits{.is_mean_of_elements = true};
  static constexpr core::expected_shape output_shape(shape in) { return in; }

  template <class T>
  static constexpr T value(std::span<const T> prediction, std::span<const T> truth) {
    T sum{};
    for (std::size_t i = 0; i < prediction.size(); ++i) {
      const T error = prediction[i] - truth[i];
      sum += error < 0 ? -error : error;
    }
    return sum / T(prediction.size());
  }
  template <class T>
  static constexpr void gradient(std::span<const T> prediction, std::span<const T> truth, std::span<T> dx) {
    const T step = T(1) / T(prediction.size());
    for (std::size_t i = 0; i < prediction.size(); ++i) {
      const T error = prediction[i] - truth[i];
      dx[i] = error > 0 ? step : error < 0 ? -step : error;  // zero or nan
    }
  }
};

using mae = mean_absolute_error;

}  // namespace strata
