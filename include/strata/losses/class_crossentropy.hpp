// The common part of the crossentropies: clamped probabilities, and the sums over classes.
#pragma once
#include <cmath>
#include <span>
#include <strata/base/rounded.hpp>
#include <strata/base/shape.hpp>

namespace strata {

namespace reasons {
inline constexpr reason crossentropy_takes_a_rank_1_shape_of_classes{
    "crossentropy takes a rank-1 shape, one prediction per class: end the network with dense<classes, softmax>"};
inline constexpr reason crossentropy_needs_at_least_2_classes_with_one_output_use_binary_crossentropy{
    "crossentropy needs at least 2 classes: with one output, use binary_crossentropy"};
}  // namespace reasons

namespace detail {

constexpr expected_shape shape_of_classes(shape in) {
  if (in.rank() != 1) return reasons::crossentropy_takes_a_rank_1_shape_of_classes;
  if (in[0] < 2) return reasons::crossentropy_needs_at_least_2_classes_with_one_output_use_binary_crossentropy;
  return in;
}

/// Probabilities are clamped to [lowest, highest] before the logarithm. The bounds are keras.config.epsilon().
template <class T>
struct probability_bounds {
  static constexpr T lowest = T(1e-7), highest = T(1 - 1e-7);
  static constexpr bool clamped(T p) { return p < lowest || p > highest; }
  static constexpr T clamp(T p) { return p < lowest ? lowest : p > highest ? highest : p; }
};

/// The largest logit, and the sum of exp(logit - largest), which cannot overflow.
template <class T>
struct softmax_sum {
  T largest, sum{};

  constexpr softmax_sum(T largest_logit, T sum_of_exponentials) : largest(largest_logit), sum(sum_of_exponentials) {}
  constexpr explicit softmax_sum(std::span<const T> logits) : largest(logits[0]) {
    for (T z : logits) largest = z > largest ? z : largest;
    for (T z : logits) sum += std::exp(z - largest);
  }
  constexpr T probability(T logit) const { return std::exp(logit - largest) / sum; }
  constexpr T negative_log_probability(T logit) const { return (largest - logit) + std::log(sum); }
};

/// -sum_i target(i) log p_i over classes. p are the predictions divided by their sum or, with FromLogits, their softmax. Targets
/// need not add up to 1.
template <bool FromLogits>
struct class_crossentropy {
  template <class T, class Target>
  static constexpr T value(std::span<const T> prediction, Target target) {
    T loss{};
    if constexpr (FromLogits) {
      const softmax_sum<T> s(prediction);
      for_targets(prediction, target,
                  [&](std::size_t i, T t) { loss += rounded(t * s.negative_log_probability(prediction[i])); });
    } else {
      const T sum = sum_of(prediction);
      for_targets(prediction, target,
                  [&](std::size_t i, T t) { loss -= rounded(t * std::log(probability_bounds<T>::clamp(prediction[i] / sum))); });
    }
    return loss;
  }

  template <class T, class Target>
  static constexpr void gradient(std::span<const T> prediction, Target target, std::span<T> dx) {
    if constexpr (FromLogits) {
      const softmax_sum<T> s(prediction);
      T targets{};
      for (std::size_t i = 0; i < prediction.size(); ++i) targets += target(i);
      for (std::size_t i = 0; i < prediction.size(); ++i) dx[i] = rounded(s.probability(prediction[i]) * targets) - target(i);
    } else {
      // p = x / sum x, so d/dx_i = (d/dp_i - sum_j p_j d/dp_j) / sum x; and d/dp_j = -t_j / p_j, or 0 where p is clamped.
      const T sum = sum_of(prediction);
      T active{};
      for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = T{};
      for_targets(prediction, target, [&](std::size_t i, T t) {
        if (const T p = prediction[i] / sum; !probability_bounds<T>::clamped(p)) {
          active += t;
          dx[i] = -t / p;
        }
      });
      for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = (dx[i] + active) / sum;
    }
  }

 private:
  template <class T>
  static constexpr T sum_of(std::span<const T> prediction) {
    T sum{};
    for (T p : prediction) sum += p;
    return sum;
  }
  /// f(class, target) for targets that are not zero: 0 * log(0) would be nan.
  template <class T, class Target, class F>
  static constexpr void for_targets(std::span<const T> prediction, Target target, F f) {
    for (std::size_t i = 0; i < prediction.size(); ++i)
      if (const T t = target(i); t != 0) f(i, t);
  }
};

/// The target of class i is 1 for i == label, else 0.
template <class T>
constexpr auto one_hot(int label) {
  return [label](std::size_t i) { return T(int(i) == label); };
}

}  // namespace detail

}  // namespace strata
