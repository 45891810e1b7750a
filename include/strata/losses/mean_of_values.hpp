// prediction: any shape
#pragma once
#include <cstddef>
#include <span>
#include <strata/concepts/loss.hpp>

namespace strata {

/// The mean over the elements of an output of a graph, without truth. So any number that layers compute from nodes is a loss, as
/// with `add_loss` in Keras: `struct gap : node<subtract<a, b>> {}; struct far : node<multiply<gap, gap>> {};` is the squared
/// distance of two nodes. https://keras.io/api/layers/base_layer/#addloss-method
struct mean_of_values {
  static constexpr auto name = "mean_of_values";
  static constexpr label_kind labels = label_kind::none;
  static constexpr core::expected_shape output_shape(shape in) { return in; }

  template <class T>
  static constexpr T value(std::span<const T> values, core::no_truth) {
    T sum{};
    for (const T each : values) sum += each;
    return sum / T(values.size());
  }
  template <class T>
  static constexpr void gradient(std::span<const T> values, core::no_truth, std::span<T> dx) {
    for (T& each : dx) each = 1 / T(values.size());
  }
};

}  // namespace strata
