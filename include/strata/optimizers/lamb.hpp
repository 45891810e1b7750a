// LAMB (You et al. 2020, "Large batch optimization for deep learning: training BERT in 76 minutes").
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <strata/optimizers/elementwise.hpp>
#include <strata/optimizers/gradient.hpp>
#include <strata/optimizers/learning_rate.hpp>
#include <strata/optimizers/parameter_norms.hpp>
#include <strata/optimizers/setting.hpp>
#include <strata/optimizers/validation.hpp>

namespace strata {

namespace core {
/// m += (g - m) * (1 - beta_1);  v += (g^2 - v) * (1 - beta_2)
/// d = (m / (1 - beta_1^t)) / (sqrt(v / (1 - beta_2^t)) + epsilon);  w -= rate * ||w|| / ||d|| * d
/// where the norms are of the whole parameter; their quotient, the trust ratio, is 1 if one of them is 0. Its product with the
/// rate is at most the largest T.
template <class T>
struct lamb_rule {
  static constexpr int slots = 2;
  detail::norm_number<T> rate;
  T one_minus_beta_1, one_minus_beta_2, correction_1, correction_2, epsilon;

  template <class V>
  constexpr V propose(const V&, reduced_gradient<V> gradient, V& m, V& v) const {
    const V g = gradient.value();
    m += detail::product(g - m, one_minus_beta_1);
    v += detail::product(detail::product(g, g) - v, one_minus_beta_2);
    return detail::product(m, correction_1) / (detail::square_root(detail::product(v, correction_2)) + epsilon);
  }
  template <class N = double>
  constexpr T scale(const norms_of_parameter<N>& norm) const {
    const detail::norm_number<T> largest = std::numeric_limits<T>::max();
    if (!(norm.weights > 0 && norm.direction > 0)) return T(rate);
    const auto nan_if_infinite = (norm.weights - norm.weights) + (norm.direction - norm.direction);
    return T(std::min(rate * (norm.weights / norm.direction), largest) + nan_if_infinite);
  }
  template <class V>
  constexpr void apply(V& w, const V& direction, T scale) const {
    w -= detail::product(direction, scale);
  }
};
}  // namespace core

/// Adam whose step in each parameter is as long as learning_rate times the norm of the parameter; for large batches.
/// lamb{.learning_rate = 1e-3, .weight_decay = 0.01}.  https://keras.io/api/optimizers/lamb
struct lamb {
  static constexpr auto name = "lamb";

  learning_rate_schedule learning_rate = 1e-3;
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;

  /// Slots: m and v.
  static constexpr int slots() { return 2; }
  static constexpr bool needs_norms() { return true; }

  /// The settings that not every optimizer has: processes that train together compare them.
  std::array<core::optimizer_setting, 3> settings() const {
    return {{{"beta_1", beta_1}, {"beta_2", beta_2}, {"epsilon", epsilon}}};
  }
  /// Throws strata_error.
  void validate() const {
    detail::check_common(*this);
    detail::check_below_1(name, "beta_1", beta_1);
    detail::check_below_1(name, "beta_2", beta_2);
    detail::check_positive(name, "epsilon", epsilon);  // 0 would give 0 / 0 if there is no gradient
  }

  /// The corrections of moments that start at zero, in double, because 1 - 0.999f is wrong by 1e-5.
  template <class T, class F>
  void with_rule(long step, double rate, F&& f) const {
    const double t = static_cast<double>(step + 1);
    f(core::lamb_rule<T>{rate, T(1 - beta_1), T(1 - beta_2), T(1 / (1 - std::pow(beta_1, t))), T(1 / (1 - std::pow(beta_2, t))),
                         T(epsilon)});
  }
};

}  // namespace strata
