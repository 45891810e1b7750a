// Adamax (Kingma and Ba 2015, section 7): Adam with the infinity norm of gradients in place of the second moment.
#pragma once
#include <array>
#include <cmath>
#include <strata/optimizers/adam.hpp>
#include <strata/optimizers/elementwise.hpp>
#include <strata/optimizers/gradient.hpp>
#include <strata/optimizers/learning_rate.hpp>
#include <strata/optimizers/setting.hpp>

namespace strata {

namespace core {
/// m += (g - m) * (1 - beta_1);  u = max(beta_2 * u, |g|);  w -= alpha * m / (u + epsilon)
/// alpha is the learning rate divided by 1 - beta_1^t.
template <class T>
struct adamax_rule {
  static constexpr int slots = 2;
  T alpha, one_minus_beta_1, beta_2, epsilon;

  template <class V>
  constexpr void operator()(V& w, reduced_gradient<V> gradient, V& m, V& u) const {
    const V g = gradient.value(), size = g < detail::all_zeros<V>() ? -g : g;
    m += detail::product(g - m, one_minus_beta_1);
    u = detail::larger(detail::product(u, beta_2), size);
    w -= m * alpha / (u + epsilon);
  }
};
}  // namespace core

/// Adam whose steps depend on the largest recent gradient: adamax{.learning_rate = 2e-3}. https://keras.io/api/optimizers/adamax
struct adamax {
  static constexpr auto name = "adamax";

  learning_rate_schedule learning_rate = 1e-3;
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;

  /// Slots: m and u.
  static constexpr int slots() { return 2; }
  /// The settings that not every optimizer has: processes that train together compare them.
  std::array<core::optimizer_setting, 3> settings() const {
    return {{{"beta_1", beta_1}, {"beta_2", beta_2}, {"epsilon", epsilon}}};
  }
  /// Throws strata_error.
  void validate() const { detail::validate_adam(*this); }

  template <class T, class F>
  void with_rule(long step, double rate, F&& f) const {
    const double alpha = rate / (1 - std::pow(beta_1, double(step + 1)));
    f(core::adamax_rule<T>{T(alpha), T(1 - beta_1), T(beta_2), T(epsilon)});
  }
};

}  // namespace strata
