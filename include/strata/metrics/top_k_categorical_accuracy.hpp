// The share of samples whose right class is among the K largest predictions.
#pragma once
#include <strata/base/all_finite.hpp>
#include <strata/metrics/categorical_accuracy.hpp>

namespace strata {

/// A sample is right if fewer than K predictions are greater than that of the label: ties at the boundary count as right. It is
/// wrong if that prediction is not finite, as in tf.math.in_top_k, or if any prediction is nan.
/// https://keras.io/api/metrics/accuracy_metrics/#sparsetopkcategoricalaccuracy-class
template <int K = 5>
struct sparse_top_k_categorical_accuracy {
  static_assert(K >= 1, "top-k accuracy needs K >= 1");
  static constexpr auto name = "sparse_top_k_categorical_accuracy";

  template <class T>
  static constexpr double measure(std::span<const T> prediction, std::int32_t label) {
    const T own = prediction[static_cast<std::size_t>(label)];
    core::place_of_class place{.is_finite = detail::is_finite(own)};
    for (const T p : prediction) {
      if (p != p) return 0;
      place.greater += p > own ? 1 : 0;
    }
    return measure_place(place);
  }
  static constexpr double measure_place(core::place_of_class p) { return p.is_finite && p.greater < K ? 1 : 0; }
};

/// The same for one-hot labels; the class is the index of the largest label.
/// https://keras.io/api/metrics/accuracy_metrics/#topkcategoricalaccuracy-class
template <int K = 5>
struct top_k_categorical_accuracy {
  static constexpr auto name = "top_k_categorical_accuracy";

  template <class T>
  static constexpr double measure(std::span<const T> prediction, std::span<const T> truth) {
    return sparse_top_k_categorical_accuracy<K>::measure(prediction, detail::position_of_largest(truth));
  }
  static constexpr double measure_place(core::place_of_class p) { return sparse_top_k_categorical_accuracy<K>::measure_place(p); }
};

}  // namespace strata
