// Adadelta (Zeiler 2012): steps have the size of recent steps, whatever the size of gradients.
#pragma once
#include <array>
#include <strata/optimizers/elementwise.hpp>
#include <strata/optimizers/gradient.hpp>
#include <strata/optimizers/learning_rate.hpp>
#include <strata/optimizers/setting.hpp>
#include <strata/optimizers/validation.hpp>

namespace strata {

namespace core {
/// v = rho * v + (1 - rho) * g^2;  d = g * sqrt(u + epsilon) / sqrt(v + epsilon);  u = rho * u + (1 - rho) * d^2;  w -= rate * d
template <class T>
struct adadelta_rule {
  static constexpr int slots = 2;
  T rate, rho, one_minus_rho, epsilon;

  template <class V>
  constexpr void operator()(V& w, reduced_gradient<V> gradient, V& v, V& u) const {
    const V g = gradient.value();
    v = detail::product(v, rho) + detail::product(detail::product(g, g), one_minus_rho);
    const V d = g * detail::square_root(u + epsilon) / detail::square_root(v + epsilon);
    u = detail::product(u, rho) + detail::product(detail::product(d, d), one_minus_rho);
    w -= detail::product(d, rate);
  }
};
}  // namespace core

/// Adadelta: adadelta{.learning_rate = 1} is that of the paper.  https://keras.io/api/optimizers/adadelta
struct adadelta {
  static constexpr auto name = "adadelta";

  learning_rate_schedule learning_rate = 1e-3;
  double rho = 0.95, epsilon = 1e-7;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;

  /// Slots: the mean squares of gradients and of steps.
  static constexpr int slots() { return 2; }
  /// The settings that not every optimizer has: processes that train together compare them.
  std::array<core::optimizer_setting, 2> settings() const { return {{{"rho", rho}, {"epsilon", epsilon}}}; }
  /// Throws strata_error.
  void validate() const {
    detail::check_common(*this);
    detail::check_below_1(name, "rho", rho);
    detail::check_positive(name, "epsilon", epsilon);  // 0 would never change a weight
  }

  template <class T, class F>
  void with_rule(long, double rate, F&& f) const {
    f(core::adadelta_rule<T>{T(rate), T(rho), T(1 - rho), T(epsilon)});
  }
};

}  // namespace strata
