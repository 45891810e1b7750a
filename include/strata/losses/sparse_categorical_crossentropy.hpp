// prediction: (C), a probability per class  truth: the index of the class
#pragma once
#include <cstdint>
#include <strata/concepts/batch_source.hpp>
#include <strata/losses/class_crossentropy.hpp>
#include <strata/losses/measured.hpp>
#include <strata/losses/options.hpp>

namespace strata {

namespace core {
struct sparse_crossentropy_settings {
  bool from_logits = false;
};
}  // namespace core

/// -log p[label], where p is the prediction divided by its sum and clamped to [1e-7, 1 - 1e-7]. With from_logits, p is the
/// softmax of the prediction. Options: from_logits. The trainer checks that labels are classes.
/// https://keras.io/api/losses/probabilistic_losses/#sparsecategoricalcrossentropy-class
template <class... Options>
struct sparse_categorical_crossentropy : core::layer_options<core::sparse_crossentropy_settings, Options...>,
                                         detail::measured<sparse_categorical_crossentropy<Options...>> {
  static constexpr auto name = "sparse_categorical_crossentropy";
  static constexpr label_kind labels = label_kind::sparse;
  static constexpr core::sparse_crossentropy_settings settings = sparse_categorical_crossentropy::configured({});
  static constexpr core::operation_traits traits{.takes = settings.from_logits ? core::value_range::real
                                                                               : core::value_range::distribution};

  static constexpr core::expected_shape output_shape(shape in) { return detail::shape_of_classes(in); }

  template <class T>
  static constexpr T value(std::span<const T> prediction, std::int32_t label) {
    return detail::class_crossentropy<settings.from_logits>::value(prediction, detail::one_hot<T>(label));
  }
  template <class T>
  static constexpr void gradient(std::span<const T> prediction, std::int32_t label, std::span<T> dx) {
    detail::class_crossentropy<settings.from_logits>::gradient(prediction, detail::one_hot<T>(label), dx);
  }
};

}  // namespace strata
