// prediction: any shape  truth: the same
#pragma once
#include <span>
#include <strata/base/rounded.hpp>
#include <strata/base/shape.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/concepts/operation.hpp>
#include <strata/losses/measured.hpp>

namespace strata {

/// Mean over the elements of (prediction - truth)^2.  https://keras.io/api/losses/regression_losses/#meansquarederror-class
struct mean_squared_error : detail::measured<mean_squared_error> {
  static constexpr auto name = "mean_squared_error";
  static constexpr label_kind labels = label_kind::dense;
  static constexpr core::operation_traits traits{.is_mean_of_elements = true};
  static constexpr core::expected_shape output_shape(shape in) { return in; }

  template <class T>
  static constexpr T value(std::span<const T> prediction, std::span<const T> truth) {
    T sum{};
    for (std::size_t i = 0; i < prediction.size(); ++i)
      sum += detail::rounded((prediction[i] - truth[i]) * (prediction[i] - truth[i]));
    return sum / T(prediction.size());
  }
  template <class T>
  static constexpr void gradient(std::span<const T> prediction, std::span<const T> truth, std::span<T> dx) {
    for (std::size_t i = 0; i < prediction.size(); ++i) dx[i] = 2 * (prediction[i] - truth[i]) / T(prediction.size());
  }
};

using mse = mean_squared_error;

}  // namespace strata
