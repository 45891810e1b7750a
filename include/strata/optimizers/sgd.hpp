// Gradient descent, plain, with momentum or with Nesterov momentum.
#pragma once
#include <array>
#include <strata/optimizers/elementwise.hpp>
#include <strata/optimizers/gradient.hpp>
#include <strata/optimizers/learning_rate.hpp>
#include <strata/optimizers/setting.hpp>
#include <strata/optimizers/validation.hpp>

namespace strata {

namespace core {
/// w -= rate * g
template <class T>
struct sgd_rule {
  static constexpr int slots = 0;
  T rate;

  template <class V>
  constexpr void operator()(V& w, reduced_gradient<V> gradient) const {
    w -= detail::product(gradient.value(), rate);
  }
};

/// v = momentum * v - rate * g;  w += v
template <class T>
struct sgd_momentum_rule {
  static constexpr int slots = 1;
  T rate, momentum;

  template <class V>
  constexpr void operator()(V& w, reduced_gradient<V> gradient, V& velocity) const {
    velocity = detail::product(velocity, momentum) - detail::product(gradient.value(), rate);
    w += velocity;
  }
};

/// v = momentum * v - rate * g;  w += momentum * v - rate * g
template <class T>
struct sgd_nesterov_rule {
  static constexpr int slots = 1;
  T rate, momentum;

  template <class V>
  constexpr void operator()(V& w, reduced_gradient<V> gradient, V& velocity) const {
    velocity = detail::product(velocity, momentum) - detail::product(gradient.value(), rate);
    w += detail::product(velocity, momentum) - detail::product(gradient.value(), rate);
  }
};
}  // namespace core

/// Gradient descent: sgd{.learning_rate = 0.1, .momentum = 0.9}.  https://keras.io/api/optimizers/sgd
struct sgd {
  static constexpr auto name = "sgd";

  learning_rate_schedule learning_rate = 0.01;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;

  int slots() const { return momentum != 0 ? 1 : 0; }

  /// The settings that not every optimizer has: processes that train together compare them.
  std::array<core::optimizer_setting, 2> settings() const { return {{{"momentum", momentum}, {"nesterov", double(nesterov)}}}; }
  /// Throws strata_error.
  void validate() const {
    detail::check_common(*this);
    if (!(momentum >= 0 && momentum <= 1)) detail::refuse(name, "momentum", momentum, "at least 0 and at most 1");
  }

  template <class T, class F>
  void with_rule(long, double rate, F&& f) const {
    if (momentum == 0)
      f(core::sgd_rule<T>{T(rate)});
    else if (nesterov)
      f(core::sgd_nesterov_rule<T>{T(rate), T(momentum)});
    else
      f(core::sgd_momentum_rule<T>{T(rate), T(momentum)});
  }
};

}  // namespace strata
