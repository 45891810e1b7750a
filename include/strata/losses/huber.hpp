// prediction: any shape  truth: the same
#pragma once
#include <span>
#include <strata/base/decimal.hpp>
#include <strata/base/rounded.hpp>
#include <strata/base/shape.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/concepts/operation.hpp>
#include <strata/losses/measured.hpp>

namespace strata {

namespace reasons {
inline constexpr reason huber_delta_must_be_positive{"the delta of huber must be greater than 0"};
}  // namespace reasons

/// Mean over the elements of e^2 / 2 where |e| <= Delta, else Delta |e| - Delta^2 / 2, with e = prediction - truth (Huber 1964).
/// https://keras.io/api/losses/regression_losses/#huber-class
template <core::decimal Delta = core::decimal(1)>
struct huber : detail::measured<huber<Delta>> {
  static constexpr auto name = "huber";
  static constexpr label_kind labels = label_kind::dense;
  static constexpr core::operation_traits traits{.is_mean_of_elements = true};
  static constexpr double delta = Delta.value();

  static constexpr core::expected_shape output_shape(shape in) {
    if (delta <= 0) return reasons::huber_delta_must_be_positive;
    return in;
  }

  template <class T>
  static constexpr T value(std::span<const T> prediction, std::span<const T> truth) {
    constexpr T d = T(delta);
    T sum{};
    for (std::size_t i = 0; i < prediction.size(); ++i) {
      const T error = prediction[i] - truth[i], size = error < 0 ? -error : error;
      sum += size <= d ? detail::rounded(error * error / 2) : detail::rounded(d * size) - d * d / 2;
    }
    return sum / T(prediction.size());
  }
  template <class T>
  static constexpr void gradient(std::span<const T> prediction, std::span<const T> truth, std::span<T> dx) {
    constexpr T d = T(delta);
    for (std::size_t i = 0; i < prediction.size(); ++i) {
      const T error = prediction[i] - truth[i];
      dx[i] = (error < -d ? -d : error > d ? d : error) / T(prediction.size());
    }
  }
};

}  // namespace strata
