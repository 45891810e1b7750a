// prediction: any shape, a probability per element  truth: the same, 0 or 1
#pragma once
#include <strata/base/rounded.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/losses/class_crossentropy.hpp>
#include <strata/losses/measured.hpp>
#include <strata/losses/options.hpp>

namespace strata {

namespace core {
struct binary_crossentropy_settings {
  bool from_logits = false;
  decimal label_smoothing{};
};
}  // namespace core

/// Mean over the elements of -(t log p + (1 - t) log(1 - p)), where p is the prediction clamped to [1e-7, 1 - 1e-7]. With
/// from_logits, p is the sigmoid of the prediction. Options: from_logits, label_smoothing (towards 1/2).
/// https://keras.io/api/losses/probabilistic_losses/#binarycrossentropy-class
template <class... Options>
struct binary_crossentropy : core::layer_options<core::binary_crossentropy_settings, Options...>,
                             detail::measured<binary_crossentropy<Options...>> {
  static constexpr auto name = "binary_crossentropy";
  static constexpr label_kind labels = label_kind::dense;
  static constexpr core::binary_crossentropy_settings settings = binary_crossentropy::configured({});
  static constexpr core::operation_traits traits{
      .takes = settings.from_logits ? core::value_range::real : core::value_range::from_0_to_1, .is_mean_of_elements = true};
  static constexpr double smoothing = settings.label_smoothing.value();

  static constexpr core::expected_shape output_shape(shape in) {
    if (smoothing < 0 || smoothing > 1) return reasons::label_smoothing_must_be_from_0_to_1;
    return in;
  }

  /// The smoothed truth.
  template <class T>
  static constexpr T target(T truth) {
    if constexpr (smoothing == 0)
      return truth;
    else
      return detail::rounded(truth * T(1 - smoothing)) + T(smoothing / 2);
  }

  /// The loss of one element with logit z and target t. It does not overflow.
  template <class T>
  static constexpr T value_of_logit(T z, T t) {
    using std::exp, std::log1p;
    return (z > 0 ? z : T{}) - detail::rounded(z * t) + log1p(exp(z > 0 ? -z : z));
  }
  template <class T>
  static constexpr T sigmoid_of(T z) {
    using std::exp;
    const T e = exp(z > 0 ? -z : z);
    return (z > 0 ? T(1) : e) / (T(1) + e);
  }

  template <class T>
  static constexpr T value(std::span<const T> prediction, std::span<const T> truth) {
    using std::log;
    using bounds = detail::probability_bounds<T>;
    T sum{};
    for (std::size_t i = 0; i < prediction.size(); ++i) {
      const T t = target(truth[i]);
      if constexpr (settings.from_logits) {
        sum += value_of_logit(prediction[i], t);
      } else {
        const T p = bounds::clamp(prediction[i]);
        sum -= detail::rounded(t * log(p)) + detail::rounded((1 - t) * log(1 - p));
      }
    }
    return sum / T(prediction.size());
  }

  template <class T>
  static constexpr void gradient(std::span<const T> prediction, std::span<const T> truth, std::span<T> dx) {
    using bounds = detail::probability_bounds<T>;
    for (std::size_t i = 0; i < prediction.size(); ++i) {
      const T t = target(truth[i]), p = prediction[i];
      if constexpr (settings.from_logits)
        dx[i] = (sigmoid_of(p) - t) / T(prediction.size());
      else
        dx[i] = bounds::clamped(p) ? T{} : (p - t) / (p * (1 - p)) / T(prediction.size());
    }
  }
};

}  // namespace strata
