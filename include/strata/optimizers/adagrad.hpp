// Adagrad (Duchi et al. 2011): steps are divided by the root of the sum of all squared gradients.
#pragma once
#include <array>
#include <strata/optimizers/elementwise.hpp>
#include <strata/optimizers/gradient.hpp>
#include <strata/optimizers/learning_rate.hpp>
#include <strata/optimizers/setting.hpp>
#include <strata/optimizers/validation.hpp>

namespace strata {

namespace core {
/// n += g^2;  w -= rate * g / sqrt(n + offset)
/// Slots start at zero: offset is the initial value of the sum, and epsilon.
template <class T>
struct adagrad_rule {
  static constexpr int slots = 1;
  T rate, offset;

  template <class V>
  constexpr void operator()(V& w, reduced_gradient<V> gradient, V& n) const {
    const V g = gradient.value();
    n += detail::product(g, g);
    w -= g * rate / detail::square_root(n + offset);
  }
};
}  // namespace core

/// Small steps for parameters with frequent gradients: adagrad{.learning_rate = 0.01}.  https://keras.io/api/optimizers/adagrad
struct adagrad {
  static constexpr auto name = "adagrad";

  learning_rate_schedule learning_rate = 1e-3;
  double initial_accumulator_value = 0.1, epsilon = 1e-7;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;

  /// One slot: the sum of squared gradients, without its initial value.
  static constexpr int slots() { return 1; }
  /// The settings that not every optimizer has: processes that train together compare them.
  std::array<core::optimizer_setting, 2> settings() const {
    return {{{"initial_accumulator_value", initial_accumulator_value}, {"epsilon", epsilon}}};
  }
  /// Throws strata_error.
  void validate() const {
    detail::check_common(*this);
    detail::check_at_least_0(name, "initial_accumulator_value", initial_accumulator_value);
    detail::check_positive(name, "epsilon", epsilon);
  }

  template <class T, class F>
  void with_rule(long, double rate, F&& f) const {
    f(core::adagrad_rule<T>{T(rate), T(initial_accumulator_value + epsilon)});
  }
};

}  // namespace strata
