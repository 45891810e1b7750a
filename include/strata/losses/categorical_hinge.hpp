// prediction: (C), a score per class  truth: (C), e.g. a one-hot row
#pragma once
#include <span>
#include <strata/base/rounded.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/losses/measured.hpp>
#include <strata/losses/rows.hpp>

namespace strata {

/// max(1 + max_i (1 - t[i]) p[i] - sum_i t[i] p[i], 0), where p is the prediction and t the truth: how far the score of the right
/// class is from exceeding all others by 1.  https://keras.io/api/losses/hinge_losses/#categoricalhinge-class
struct categorical_hinge : detail::measured<categorical_hinge> {
  static constexpr auto name = "categorical_hinge";
  static constexpr label_kind labels = label_kind::dense;
  static constexpr bool one_hot = true;
  static constexpr core::expected_shape output_shape(shape in) { return detail::shape_of_row(in); }

  template <class T>
  static constexpr T value(std::span<const T> prediction, std::span<const T> truth) {
    T right{};
    for (std::size_t i = 0; i < prediction.size(); ++i) right += detail::rounded(truth[i] * prediction[i]);
    const std::size_t rival = best_rival(prediction, truth);
    const T missing = score_against(prediction[rival], truth[rival]) - right + 1;
    return missing < 0 ? T{} : missing;
  }
  template <class T>
  static constexpr void gradient(std::span<const T> prediction, std::span<const T> truth, std::span<T> dx) {
    const bool misses = value(prediction, truth) > 0;
    for (std::size_t i = 0; i < prediction.size(); ++i) dx[i] = misses ? -truth[i] : T{};
    const std::size_t rival = best_rival(prediction, truth);
    if (misses) dx[rival] += 1 - truth[rival];
  }

 private:
  template <class T>
  static constexpr T score_against(T prediction, T truth) {
    return (1 - truth) * prediction;
  }
  /// The index of the largest score against the truth; the first of equal ones.
  template <class T>
  static constexpr std::size_t best_rival(std::span<const T> prediction, std::span<const T> truth) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < prediction.size(); ++i)
      if (score_against(prediction[i], truth[i]) > score_against(prediction[best], truth[best])) best = i;
    return best;
  }
};

}  // namespace strata
