// Adam (Kingma and Ba 2015), AMSGrad (Reddi et al. 2018) and AdamW (Loshchilov and Hutter 2019).
#pragma once
#include <array>
#include <cmath>
#include <strata/optimizers/elementwise.hpp>
#include <strata/optimizers/gradient.hpp>
#include <strata/optimizers/learning_rate.hpp>
#include <strata/optimizers/setting.hpp>
#include <strata/optimizers/validation.hpp>

namespace strata {

namespace core {
/// m += (g - m) * (1 - beta_1);  v += (g^2 - v) * (1 - beta_2);  w -= alpha * m / (sqrt(v) + epsilon)
/// alpha is the learning rate times the correction for moments that start at zero.
template <class T>
struct adam_rule {
  static constexpr int slots = 2;
  T alpha, one_minus_beta_1, one_minus_beta_2, epsilon;

  template <class V>
  constexpr void operator()(V& w, reduced_gradient<V> gradient, V& m, V& v) const {
    const V g = gradient.value();
    m += detail::product(g - m, one_minus_beta_1);
    v += detail::product(detail::product(g, g) - v, one_minus_beta_2);
    w -= m * alpha / (detail::square_root(v) + epsilon);
  }
};

/// The rule with the largest v so far instead of v.
template <class T>
struct adam_amsgrad_rule {
  static constexpr int slots = 3;
  T alpha, one_minus_beta_1, one_minus_beta_2, epsilon;

  template <class V>
  constexpr void operator()(V& w, reduced_gradient<V> gradient, V& m, V& v, V& largest) const {
    const V g = gradient.value();
    m += detail::product(g - m, one_minus_beta_1);
    v += detail::product(detail::product(g, g) - v, one_minus_beta_2);
    largest = detail::larger(largest, v);
    w -= m * alpha / (detail::square_root(largest) + epsilon);
  }
};
}  // namespace core

namespace detail {
template <class Adam>
void validate_adam(const Adam& o) {
  check_common(o);
  check_below_1(Adam::name, "beta_1", o.beta_1);
  check_below_1(Adam::name, "beta_2", o.beta_2);
  check_positive(Adam::name, "epsilon", o.epsilon);  // 0 would give 0 / 0 for elements that never had a gradient
}

/// The settings specific to Adam's optimizers.
std::array<optimizer_setting, 4> settings_of_adam(const auto& o) {
  return {{{"beta_1", o.beta_1}, {"beta_2", o.beta_2}, {"epsilon", o.epsilon}, {"amsgrad", double(o.amsgrad)}}};
}

/// Corrections are computed in double, because 1 - 0.999f is wrong by 1e-5.
template <class T, class Adam, class F>
void with_adam_rule(const Adam& o, long step, double rate, F&& f) {
  const double t = static_cast<double>(step + 1);
  const T alpha = T(rate * std::sqrt(1 - std::pow(o.beta_2, t)) / (1 - std::pow(o.beta_1, t)));
  if (o.amsgrad)
    f(adam_amsgrad_rule<T>{alpha, T(1 - o.beta_1), T(1 - o.beta_2), T(o.epsilon)});
  else
    f(adam_rule<T>{alpha, T(1 - o.beta_1), T(1 - o.beta_2), T(o.epsilon)});
}
}  // namespace detail

/// Adam: adam{.learning_rate = 3e-4}. epsilon is added to the root of the uncorrected v.  https://keras.io/api/optimizers/adam
struct adam {
  static constexpr auto name = "adam";

  learning_rate_schedule learning_rate = 1e-3;
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7;
  bool amsgrad = false;
  double weight_decay = 0, clipnorm = 0, clipvalue = 0, global_clipnorm = 0;

  /// Slots: m, v and, with amsgrad, the largest v.
  int slots() const { return amsgrad ? 3 : 2; }
  /// The settings that not every optimizer has: processes that train together compare them.
  std::array<core::optimizer_setting, 4> settings() const { return detail::settings_of_adam(*this); }
  /// Throws strata_error.
  void validate() const { detail::validate_adam(*this); }

  template <class T, class F>
  void with_rule(long step, double rate, F&& f) const {
    detail::with_adam_rule<T>(*this, step, rate, f);
  }
};

/// Adam with decoupled weight decay: each step multiplies the weights by 1 - weight_decay * learning_rate.
/// https://keras.io/api/optimizers/adamw
struct adamw {
  static constexpr auto name = "adamw";

  learning_rate_schedule learning_rate = 1e-3;
  double weight_decay = 0.004;
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7;
  bool amsgrad = false;
  double clipnorm = 0, clipvalue = 0, global_clipnorm = 0;

  int slots() const { return amsgrad ? 3 : 2; }
  /// The settings that not every optimizer has: processes that train together compare them.
  std::array<core::optimizer_setting, 4> settings() const { return detail::settings_of_adam(*this); }
  /// Throws strata_error.
  void validate() const { detail::validate_adam(*this); }

  template <class T, class F>
  void with_rule(long step, double rate, F&& f) const {
    detail::with_adam_rule<T>(*this, step, rate, f);
  }
};

}  // namespace strata
