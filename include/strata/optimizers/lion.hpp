// Lion (Chen et al. 2023, "Symbolic discovery of optimization algorithms"): steps of equal size in the direction of the momentum.
#pragma once
#include <array>
#include <strata/optimizers/elementwise.hpp>
#include <strata/optimizers/gradient.hpp>
#include <strata/optimizers/learning_rate.hpp>
#include <strata/optimizers/setting.hpp>
#include <strata/optimizers/validation.hpp>

namespace strata {

namespace core {
/// w -= rate * sign(beta_1 * m + (1 - beta_1) * g);  m = beta_2 * m + (1 - beta_2) * g
template <class T>
struct lion_rule {
  static constexpr int slots = 1;
  T rate, beta_1, one_minus_beta_1, beta_2, one_minus_beta_2;

  template <class V>
  constexpr void operator()(V& w, reduced_gradient<V> gradient, V& m) const {
    const V g = gradient.value(), zero = detail::all_zeros<V>(), up = detail::spread<V>(rate), down = detail::spread<V>(-rate);
    const V direction = detail::product(m, beta_1) + detail::product(g, one_minus_beta_1);
    w -= direction > zero ? up : direction < zero ? down : direction;  // the last is 0 or nan
    m = detail::product(m, beta_2) + detail::product(g, one_minus_beta_2);
  }
};
}  // namespace core

/// Lion: lion{.learning_rate = 1e-4, .weight_decay = 0.1}. Use a learning rate 3 to 10 times smaller than for adam.
/// https://keras.io/api/optimizers/lion
struct lion {
  static constexpr auto name = "lion";

  learning_rate_schedule learning_rate = 1e-3;
  double beta_1 = 0.9, beta_2 = 0.99;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;

  /// One slot: the momentum.
  static constexpr int slots() { return 1; }
  /// The settings that not every optimizer has: processes that train together compare them.
  std::array<core::optimizer_setting, 2> settings() const { return {{{"beta_1", beta_1}, {"beta_2", beta_2}}}; }
  /// Throws strata_error.
  void validate() const {
    detail::check_common(*this);
    if (!(beta_1 > 0 && beta_1 <= 1)) detail::refuse(name, "beta_1", beta_1, "greater than 0 and at most 1");
    detail::check_below_1(name, "beta_2", beta_2);
  }

  template <class T, class F>
  void with_rule(long, double rate, F&& f) const {
    f(core::lion_rule<T>{T(rate), T(beta_1), T(1 - beta_1), T(beta_2), T(1 - beta_2)});
  }
};

}  // namespace strata
