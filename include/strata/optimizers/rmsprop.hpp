// RMSprop (Hinton 2012): steps are divided by the root of a moving mean of squared gradients.
#pragma once
#include <array>
#include <strata/optimizers/elementwise.hpp>
#include <strata/optimizers/gradient.hpp>
#include <strata/optimizers/learning_rate.hpp>
#include <strata/optimizers/setting.hpp>
#include <strata/optimizers/validation.hpp>

namespace strata {

namespace detail {
template <class T>
struct rmsprop_constants {
  T rate, rho, one_minus_rho, momentum, epsilon;

  /// Updates v, and returns rate * g / sqrt(v + epsilon).
  template <class V>
  constexpr V increment(V g, V& v) const {
    v = product(v, rho) + product(product(g, g), one_minus_rho);
    return g * rate / square_root(v + epsilon);
  }
  /// The same with the variance v - a^2 of the updated v and a instead of the mean square; rounding can make it negative
  template <class V>
  constexpr V centered_increment(V g, V& v, V& a) const {
    v = product(v, rho) + product(product(g, g), one_minus_rho);
    a = product(a, rho) + product(g, one_minus_rho);
    return g * rate / square_root(larger(spread<V>(epsilon), v - product(a, a) + epsilon));
  }
};
}  // namespace detail

namespace core {
/// v = rho * v + (1 - rho) * g^2;  w -= rate * g / sqrt(v + epsilon)
template <class T>
struct rmsprop_rule : detail::rmsprop_constants<T> {
  static constexpr int slots = 1;

  template <class V>
  constexpr void operator()(V& w, reduced_gradient<V> gradient, V& v) const {
    w -= this->increment(gradient.value(), v);
  }
};

/// The increments of rmsprop_rule with momentum: m = momentum * m + increment;  w -= m
template <class T>
struct rmsprop_momentum_rule : detail::rmsprop_constants<T> {
  static constexpr int slots = 2;

  template <class V>
  constexpr void operator()(V& w, reduced_gradient<V> gradient, V& v, V& m) const {
    m = detail::product(m, this->momentum) + this->increment(gradient.value(), v);
    w -= m;
  }
};

/// a = rho * a + (1 - rho) * g;  w -= rate * g / sqrt(v - a^2 + epsilon)
template <class T>
struct rmsprop_centered_rule : detail::rmsprop_constants<T> {
  static constexpr int slots = 2;

  template <class V>
  constexpr void operator()(V& w, reduced_gradient<V> gradient, V& v, V& a) const {
    w -= this->centered_increment(gradient.value(), v, a);
  }
};

/// The increments of rmsprop_centered_rule with momentum: m = momentum * m + increment;  w -= m
template <class T>
struct rmsprop_centered_momentum_rule : detail::rmsprop_constants<T> {
  static constexpr int slots = 3;

  template <class V>
  constexpr void operator()(V& w, reduced_gradient<V> gradient, V& v, V& m, V& a) const {
    m = detail::product(m, this->momentum) + this->centered_increment(gradient.value(), v, a);
    w -= m;
  }
};
}  // namespace core

/// RMSprop: rmsprop{.learning_rate = 1e-3, .rho = 0.9}. epsilon is added inside the root. https://keras.io/api/optimizers/rmsprop
struct rmsprop {
  static constexpr auto name = "rmsprop";

  learning_rate_schedule learning_rate = 1e-3;
  double rho = 0.9, momentum = 0, epsilon = 1e-7;
  bool centered = false;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;

  /// Slots: the mean square; with momentum, the momentum; if centered, the mean.
  int slots() const { return 1 + (momentum > 0 ? 1 : 0) + (centered ? 1 : 0); }

  /// The settings that not every optimizer has: processes that train together compare them.
  std::array<core::optimizer_setting, 4> settings() const {
    return {{{"rho", rho}, {"momentum", momentum}, {"epsilon", epsilon}, {"centered", double(centered)}}};
  }
  /// Throws strata_error.
  void validate() const {
    detail::check_common(*this);
    detail::check_below_1(name, "rho", rho);
    detail::check_at_least_0(name, "momentum", momentum);
    detail::check_positive(name, "epsilon", epsilon);
  }

  template <class T, class F>
  void with_rule(long, double rate, F&& f) const {
    const detail::rmsprop_constants<T> c{T(rate), T(rho), T(1 - rho), T(momentum), T(epsilon)};
    if (centered && momentum > 0)
      f(core::rmsprop_centered_momentum_rule<T>{c});
    else if (centered)
      f(core::rmsprop_centered_rule<T>{c});
    else if (momentum > 0)
      f(core::rmsprop_momentum_rule<T>{c});
    else
      f(core::rmsprop_rule<T>{c});
  }
};

}  // namespace strata
