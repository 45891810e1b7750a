// prediction: (C), a probability per class  truth: the number of the class
#pragma once
#include <cstdint>
#include <strata/concepts/batch_source.hpp>
#include <strata/losses/class_crossentropy.hpp>
#include <strata/losses/measured.hpp>
#include <strata/losses/options.hpp>

namespace strata {

struct sparse_crossentropy_settings {
  bool from_logits = false;
};

/// -log p[label], where p is the prediction divided by its sum and kept within [1e-7, 1 - 1e-7]; or, from_logits, its softmax.
/// Options: from_logits. The label must be a class; the trainer checks that.
/// https://keras.io/api/losses/probabilistic_losses/#sparsecategoricalcrossentropy-class
template <class... Options>
struct sparse_categorical_crossentropy : layer_options<sparse_crossentropy_settings, Options...>,
                                         detail::measured<sparse_categorical_crossentropy<Options...>> {
  static constexpr auto name = "sparse_categorical_crossentropy";
  static constexpr label_kind labels = label_kind::sparse;
  static constexpr sparse_crossentropy_settings settings = sparse_categorical_crossentropy::configured({});

  static constexpr expected_shape output_shape(shape in) { return detail::shape_of_classes(in); }

  template <class T>
  static T value(std::span<const T> prediction, std::int32_t label) {
    return detail::class_crossentropy<settings.from_logits>::value(prediction, detail::one_hot<T>(label));
  }
  template <class T>
  static void gradient(std::span<const T> prediction, std::int32_t label, std::span<T> dx) {
    detail::class_crossentropy<settings.from_logits>::gradient(prediction, detail::one_hot<T>(label), dx);
  }
};

}  // namespace strata
