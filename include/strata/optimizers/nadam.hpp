// Nadam (Dozat 2016): Adam with Nesterov momentum.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <strata/optimizers/adam.hpp>
#include <strata/optimizers/elementwise.hpp>
#include <strata/optimizers/gradient.hpp>
#include <strata/optimizers/learning_rate.hpp>
#include <strata/optimizers/setting.hpp>

namespace strata {

namespace core {
/// m += (g - m) * (1 - beta_1);  v += (g^2 - v) * (1 - beta_2)
/// w -= (of_m * m + of_g * g) / (sqrt(v / (1 - beta_2^t)) + epsilon), where of_m and of_g include the learning rate.
template <class T>
struct nadam_rule {
  static constexpr int slots = 2;
  T of_m, of_g, one_minus_beta_1, one_minus_beta_2, correction, epsilon;

  template <class V>
  constexpr void operator()(V& w, reduced_gradient<V> gradient, V& m, V& v) const {
    const V g = gradient.value();
    m += detail::product(g - m, one_minus_beta_1);
    v += detail::product(detail::product(g, g) - v, one_minus_beta_2);
    const V direction = detail::product(m, of_m) + detail::product(g, of_g);
    w -= direction / (detail::square_root(detail::product(v, correction)) + epsilon);
  }
};
}  // namespace core

/// Adam that looks ahead: nadam{.learning_rate = 3e-4}. beta_1 of step t is beta_1 * (1 - 0.96^t / 2).
/// https://keras.io/api/optimizers/nadam
struct nadam {
  static constexpr auto name = "nadam";

  learning_rate_schedule learning_rate = 1e-3;
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;

  /// Slots: m and v.
  static constexpr int slots() { return 2; }
  /// The settings that not every optimizer has: processes that train together compare them.
  std::array<core::optimizer_setting, 3> settings() const {
    return {{{"beta_1", beta_1}, {"beta_2", beta_2}, {"epsilon", epsilon}}};
  }
  /// Throws strata_error.
  void validate() const { detail::validate_adam(*this); }

  /// Corrections are computed in double, because 1 - 0.999f is wrong by 1e-5.
  template <class T, class F>
  void with_rule(long step, double rate, F&& f) const {
    const double t = static_cast<double>(step + 1);
    const double now = beta_1 * (1 - std::pow(0.96, t) / 2), next = beta_1 * (1 - std::pow(0.96, t + 1) / 2);
    const double product = product_until(step + 1);
    f(core::nadam_rule<T>{T(rate * next / (1 - product * next)), T(rate * (1 - now) / (1 - product)), T(1 - beta_1),
                          T(1 - beta_2), T(1 / (1 - std::pow(beta_2, t))), T(epsilon)});
  }

 private:
  /// beta_1 of step 1 times that of step 2, and so on, up to step t.
  double product_until(long t) const {
    double product = std::pow(beta_1, double(t)), power = 1;
    for (long i = std::min(t, 1000L); i > 0; --i) product *= 1 - (power *= 0.96) / 2;  // later factors round to beta_1 in double
    return product;
  }
};

}  // namespace strata
