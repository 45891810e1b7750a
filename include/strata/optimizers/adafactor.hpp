// Adafactor (Shazeer and Stern 2018, "Adafactor: adaptive learning rates with sublinear memory cost").
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <strata/optimizers/elementwise.hpp>
#include <strata/optimizers/gradient.hpp>
#include <strata/optimizers/learning_rate.hpp>
#include <strata/optimizers/optimizer_traits.hpp>
#include <strata/optimizers/parameter_norms.hpp>
#include <strata/optimizers/setting.hpp>
#include <strata/optimizers/validation.hpp>

namespace strata {

namespace core {
/// r += (mean of g^2 + epsilon_1 over each row - r) * (1 - beta_2);  c likewise over each column;  v = r * c / mean of r
/// d = g / sqrt(v);  w -= rate * max(epsilon_2, rms(w)) / max(1, rms(d) / clip_threshold) * d
/// where rms is the root of the mean square over the whole parameter.
template <class T>
struct adafactor_rule {
  static constexpr int slots = 1;
  using number = detail::norm_number<T>;
  number rate;
  T one_minus_beta_2, epsilon_1;
  number epsilon_2, clip_threshold;

  template <class V>
  constexpr V square(reduced_gradient<V> gradient) const {
    const V g = gradient.value();
    return detail::product(g, g) + epsilon_1;
  }
  template <class V>
  constexpr void follow(V& moment, const V& mean) const {
    moment += detail::product(mean - moment, one_minus_beta_2);
  }
  template <class V>
  constexpr V propose(reduced_gradient<V> gradient, const V& moment) const {
    return gradient.value() / detail::square_root(moment);
  }
  template <class N = double>
  constexpr T scale(const norms_of_parameter<N>& norm) const {
    const double root = std::sqrt(double(norm.elements));
    return T(rate * std::max<number>(epsilon_2, norm.weights / root) /
             std::max<number>(1, norm.direction / root / clip_threshold));
  }
  template <class V>
  constexpr void apply(V& w, const V& direction, T scale) const {
    w -= detail::product(direction, scale);
  }
};
}  // namespace core

/// Steps relative to the size of the weights, with second moments of rows and columns only. Its memory has room for one element
/// per weight, half of Adam's. The rate of step t is learning_rate, but at most 1 / sqrt(t); in Keras this holds with either
/// value of relative_step.
/// adafactor{.learning_rate = 1e-2, .clip_threshold = 1}.  https://keras.io/api/optimizers/adafactor
struct adafactor {
  static constexpr auto name = "adafactor";

  learning_rate_schedule learning_rate = 1e-3;
  double beta_2_decay = -0.8, epsilon_1 = 1e-30, epsilon_2 = 1e-3, clip_threshold = 1;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;

  /// One slot for the moments.
  static constexpr int slots() { return 1; }
  static constexpr bool needs_norms() { return true; }
  static constexpr core::optimizer_traits traits{.needs_whole_matrices = true};

  /// The settings that not every optimizer has: processes that train together compare them.
  std::array<core::optimizer_setting, 4> settings() const {
    return {
        {{"beta_2_decay", beta_2_decay}, {"epsilon_1", epsilon_1}, {"epsilon_2", epsilon_2}, {"clip_threshold", clip_threshold}}};
  }
  /// Throws strata_error.
  void validate() const {
    detail::check_common(*this);
    if (!(beta_2_decay < 0 && beta_2_decay >= -10))
      detail::refuse(name, "beta_2_decay", beta_2_decay, "at least -10 and below 0");
    detail::check_positive(name, "epsilon_1", epsilon_1);  // 0 would give 0 / 0 if there is no gradient
    detail::check_at_least_0(name, "epsilon_2", epsilon_2);
    detail::check_positive(name, "clip_threshold", clip_threshold);
  }

  /// beta_2 = 1 - t^beta_2_decay: 0 in the first step, so that the moments need no correction.
  template <class T, class F>
  void with_rule(long step, double rate, F&& f) const {
    const double t = static_cast<double>(step + 1);
    f(core::adafactor_rule<T>{std::min(rate, 1 / std::sqrt(t)), T(std::pow(t, beta_2_decay)), T(epsilon_1), epsilon_2,
                              clip_threshold});
  }
};

}  // namespace strata
