// FTRL-Proximal (McMahan et al. 2013, "Ad click prediction: a view from the trenches"): weights that are exactly zero.
#pragma once
#include <array>
#include <cstddef>
#include <limits>
#include <strata/optimizers/elementwise.hpp>
#include <strata/optimizers/gradient.hpp>
#include <strata/optimizers/learning_rate.hpp>
#include <strata/optimizers/setting.hpp>
#include <strata/optimizers/validation.hpp>

namespace strata {

namespace detail {
template <class T>
struct ftrl_constants {
  T rate, start, l1, twice_l2, twice_shrinkage;  // start: the initial sum of squares, because slots start at zero

  /// power(n): n ^ -learning_rate_power
  template <class V, class Power>
  constexpr void update(V& w, V g, V& n, V& z, Power power) const {
    if (rate == 0) return;  // a schedule may end at 0
    const V before = power(n + start);
    n += product(g, g);
    const V after = power(n + start), low = spread<V>(-l1), high = spread<V>(l1);
    z += g + product(w, twice_shrinkage) - product((after - before) / rate, w);
    const V clipped = z > high ? high : z < low ? low : z;
    w = (clipped - z) / (after / rate + twice_l2);
  }
};
}  // namespace detail

namespace core {
/// s = (n + g^2)^p - n^p;  n += g^2;  z += g + 2 * l2_shrinkage * w - s / rate * w
/// w = (clamp(z, -l1, l1) - z) / (n^p / rate + 2 * l2 + beta / rate)
/// for p = 1/2, where n starts at initial_accumulator_value and p is -learning_rate_power.
template <class T>
struct ftrl_rule : detail::ftrl_constants<T> {
  static constexpr int slots = 2;

  template <class V>
  constexpr void operator()(V& w, reduced_gradient<V> gradient, V& n, V& z) const {
    this->update(w, gradient.value(), n, z, [](V x) { return detail::square_root(x); });
  }
};

/// The rule for any p.
template <class T>
struct ftrl_power_rule : detail::ftrl_constants<T> {
  static constexpr int slots = 2;
  T exponent;

  template <class V>
  constexpr void operator()(V& w, reduced_gradient<V> gradient, V& n, V& z) const {
    this->update(w, gradient.value(), n, z, [this](V x) {
      return detail::power(detail::larger(x, detail::spread<V>(std::numeric_limits<T>::min())), exponent);
    });
  }
};
}  // namespace core

/// For wide and sparse models: ftrl{.learning_rate = 0.1, .l1_regularization_strength = 0.01}. A step with a learning rate of 0
/// changes nothing.  https://keras.io/api/optimizers/ftrl
struct ftrl {
  static constexpr auto name = "ftrl";

  learning_rate_schedule learning_rate = 1e-3;
  double learning_rate_power = -0.5, initial_accumulator_value = 0.1;
  double l1_regularization_strength = 0, l2_regularization_strength = 0, l2_shrinkage_regularization_strength = 0, beta = 0;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;

  /// Slots: the sum of squared gradients, without its initial value, and z.
  static constexpr int slots() { return 2; }
  /// The settings that not every optimizer has: processes that train together compare them.
  std::array<core::optimizer_setting, 6> settings() const {
    return {{{"learning_rate_power", learning_rate_power},
             {"initial_accumulator_value", initial_accumulator_value},
             {"l1_regularization_strength", l1_regularization_strength},
             {"l2_regularization_strength", l2_regularization_strength},
             {"l2_shrinkage_regularization_strength", l2_shrinkage_regularization_strength},
             {"beta", beta}}};
  }
  /// Throws strata_error.
  void validate() const {
    detail::check_common(*this);
    detail::check_finite(name, "learning_rate_power", learning_rate_power);
    if (learning_rate_power > 0) detail::refuse(name, "learning_rate_power", learning_rate_power, "at most 0");
    const auto all = settings();
    for (std::size_t i = 1; i < all.size(); ++i) detail::check_at_least_0(name, all[i].name, all[i].value);
    if (initial_accumulator_value == 0 && l2_regularization_strength == 0 && beta == 0)  // 0 / 0 where no gradient arrives
      detail::refuse(name, "initial_accumulator_value", 0, "greater than 0, unless beta or l2_regularization_strength is");
  }

  template <class T, class F>
  void with_rule(long, double rate, F&& f) const {
    const double l2 = l2_regularization_strength, shrinkage = l2_shrinkage_regularization_strength;
    const detail::ftrl_constants<T> c{T(rate), T(initial_accumulator_value), T(l1_regularization_strength),
                                      T(2 * l2 + (beta > 0 ? beta / rate : 0)), T(2 * shrinkage)};
    if (learning_rate_power == -0.5)
      f(core::ftrl_rule<T>{c});
    else
      f(core::ftrl_power_rule<T>{c, T(-learning_rate_power)});
  }
};

}  // namespace strata
