// prediction: (C), a probability per class  truth: (C), e.g. a one-hot row
#pragma once
#include <strata/base/rounded.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/losses/class_crossentropy.hpp>
#include <strata/losses/measured.hpp>
#include <strata/losses/options.hpp>

namespace strata {

namespace core {
struct categorical_crossentropy_settings {
  bool from_logits = false;
  decimal label_smoothing{};
};
}  // namespace core

/// -sum_i truth[i] log p[i], where p is the prediction divided by its sum and clamped to [1e-7, 1 - 1e-7]. With from_logits, p is
/// the softmax of the prediction. Options: from_logits, label_smoothing.
/// https://keras.io/api/losses/probabilistic_losses/#categoricalcrossentropy-class
template <class... Options>
struct categorical_crossentropy : core::layer_options<core::categorical_crossentropy_settings, Options...>,
                                  detail::measured<categorical_crossentropy<Options...>> {
  static constexpr auto name = "categorical_crossentropy";
  static constexpr label_kind labels = label_kind::dense;
  static constexpr bool one_hot = true;  // a target is a row with the share of each class
  static constexpr core::categorical_crossentropy_settings settings = categorical_crossentropy::configured({});
  static constexpr core::operation_traits traits{.takes = settings.from_logits ? core::value_range::real
                                                                               : core::value_range::distribution};
  static constexpr double smoothing = settings.label_smoothing.value();

  static constexpr core::expected_shape output_shape(shape in) {
    if (smoothing < 0 || smoothing > 1) return reasons::label_smoothing_must_be_from_0_to_1;
    return detail::shape_of_classes(in);
  }

  /// The smoothed truth, as a function of the class index.
  template <class T>
  static constexpr auto target(std::span<const T> truth) {
    return [truth](std::size_t i) {
      if constexpr (smoothing == 0)
        return truth[i];
      else
        return detail::rounded(truth[i] * T(1 - smoothing)) + T(smoothing) / T(truth.size());
    };
  }

  template <class T>
  static constexpr T value(std::span<const T> prediction, std::span<const T> truth) {
    return detail::class_crossentropy<settings.from_logits>::value(prediction, target(truth));
  }
  template <class T>
  static constexpr void gradient(std::span<const T> prediction, std::span<const T> truth, std::span<T> dx) {
    detail::class_crossentropy<settings.from_logits>::gradient(prediction, target(truth), dx);
  }
};

}  // namespace strata
