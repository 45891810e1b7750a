// prediction: (N)  truth: (N)
#pragma once
#include <cmath>
#include <span>
#include <strata/base/rounded.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/losses/rows.hpp>

namespace strata {

namespace detail {
/// The inverse norm of a vector, from its squared norm; at most 1e7.
template <class T>
constexpr T inverse_norm(T square) {
  const T inverse = 1 / std::sqrt(square);
  return inverse > T(1e7) ? T(1e7) : inverse;
}
}  // namespace detail

/// As a loss -cos, as a metric cos of the angle between prediction and truth. Each is divided by its norm or, if that is smaller,
/// by 1e-7.  https://keras.io/api/losses/regression_losses/#cosinesimilarity-class
struct cosine_similarity {
  static constexpr auto name = "cosine_similarity";
  static constexpr label_kind labels = label_kind::dense;
  static constexpr core::expected_shape output_shape(shape in) { return detail::shape_of_row(in); }

  template <class T>
  static constexpr T value(std::span<const T> prediction, std::span<const T> truth) {
    return -dot(prediction, truth) * detail::inverse_norm(dot(prediction, prediction)) * detail::inverse_norm(dot(truth, truth));
  }
  template <class T>
  static constexpr void gradient(std::span<const T> prediction, std::span<const T> truth, std::span<T> dx) {
    const T of_prediction = detail::inverse_norm(dot(prediction, prediction)), of_truth = detail::inverse_norm(dot(truth, truth));
    const T along = along_prediction(dot(prediction, truth), of_prediction, of_truth);
    for (std::size_t i = 0; i < dx.size(); ++i)
      dx[i] = detail::rounded(along * prediction[i]) - detail::rounded(of_prediction * of_truth * truth[i]);
  }
  /// The factor of the gradient along the prediction, due to the division by its norm. It is 0 if that norm is too small.
  template <class T>
  static constexpr T along_prediction(T product, T of_prediction, T of_truth) {
    return of_prediction < T(1e7) ? product * of_truth * of_prediction * of_prediction * of_prediction : T{};
  }

  template <class T>
  static constexpr double measure(std::span<const T> prediction, std::span<const T> truth) {
    return -static_cast<double>(value(prediction, truth));
  }

 private:
  template <class T>
  static constexpr T dot(std::span<const T> a, std::span<const T> b) {
    T sum{};
    for (std::size_t i = 0; i < a.size(); ++i) sum += detail::rounded(a[i] * b[i]);
    return sum;
  }
};

}  // namespace strata
