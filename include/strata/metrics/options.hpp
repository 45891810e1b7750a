// Options of metrics are types: precision_score<decision_threshold<0.7_r>, class_id<2>>.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <strata/base/decimal.hpp>

namespace strata {

/// A prediction greater than this is positive.
template <core::decimal Value>
struct decision_threshold {
  static constexpr void configure(auto& settings)
    requires requires { settings.threshold; }
  {
    settings.threshold = Value, settings.has_threshold = true;
  }
};

/// Only the K largest predictions of a sample are positive; of equal ones, the first. nan and minus infinity are never positive,
/// but nan counts among the largest, as in Keras.
template <int K>
struct top_k {
  static_assert(K >= 1, "top_k needs K >= 1");
  static constexpr void configure(auto& settings)
    requires requires { settings.top_k; }
  {
    settings.top_k = K;
  }
};

/// Evaluates one class only.
template <int Class>
struct class_id {
  static_assert(Class >= 0, "class_id counts from 0");
  static constexpr void configure(auto& settings)
    requires requires { settings.class_id; }
  {
    settings.class_id = Class;
  }
};

namespace detail {

template <class Option, class Settings>
concept metric_option = requires(Settings& s) { Option::configure(s); };

/// Base of metrics with options.
template <class Settings, class... Options>
struct metric_options {
  static constexpr bool knows_options = (metric_option<Options, Settings> && ...);
  static_assert(knows_options, "the metric does not support one of its options");
  static constexpr Settings settings = [] {
    Settings s;
    (
        [&] {
          if constexpr (metric_option<Options, Settings>) Options::configure(s);
        }(),
        ...);
    return s;
  }();
};

/// The truth of element i of a sample. A class label is 1 at its own element; with a single element, it is the value itself.
template <class T>
constexpr T truth_of_element(std::span<const T> truth, std::span<const T>, std::size_t i) {
  return truth[i];
}
template <class T>
constexpr T truth_of_element(std::int32_t label, std::span<const T> prediction, std::size_t i) {
  return prediction.size() == 1 ? T(label) : T(label == std::int32_t(i));
}

/// Whether fewer than k predictions of the sample are greater than element i, or equal to it and before it, or nan.
template <class T>
constexpr bool is_among_largest(std::span<const T> prediction, std::size_t i, int k) {
  int before = 0;
  for (std::size_t j = 0; j < prediction.size(); ++j)
    before += !(prediction[j] <= prediction[i]) || (prediction[j] == prediction[i] && j < i) ? 1 : 0;
  return before < k;
}

/// part / whole, and 0 for 0 / 0.
constexpr double fraction_of(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace detail

}  // namespace strata
