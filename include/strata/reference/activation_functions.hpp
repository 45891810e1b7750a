// The formulas of the elementwise activations, for one element. All kernels on the host use them.
#pragma once
#include <cmath>
#include <concepts>
#include <numbers>
#include <strata/base/rounded.hpp>
#include <strata/layers/activations.hpp>
#include <strata/layers/rescaling.hpp>

namespace strata {

namespace core {
/// The value of an activation for one element, and its slope there:
///   `value(x)`, `derivative(x, y)` with y = value(x)
///   `uses_input`, `uses_output`: which of the two the derivative reads; the other may be anything.
/// An activation of the user may have these members itself. They call functions such as exp without a namespace, after
/// `using std::exp`: a type that records operations (xla) has its own overloads.
template <class Activation>
struct activation_function : Activation {};

template <class A>
concept elementwise_activation = requires { typename A::is_activation; } && requires(float x) {
  { activation_function<A>::value(x) } -> std::same_as<float>;
  { activation_function<A>::derivative(x, x) } -> std::same_as<float>;
  { activation_function<A>::uses_input } -> std::convertible_to<bool>;
  { activation_function<A>::uses_output } -> std::convertible_to<bool>;
};
}  // namespace core

namespace detail {
/// The slope is computed from the result, so the memory of the input may be reused.
struct slope_from_output {
  static constexpr bool uses_input = false, uses_output = true;
};
struct slope_from_input {
  static constexpr bool uses_input = true, uses_output = false;
};
}  // namespace detail

namespace core {
template <>
struct activation_function<relu> : detail::slope_from_output {
  template <class T>
  static constexpr T value(T x) {
    return x < 0 ? T(0) : x;  // nan stays nan, so that no layer hides it
  }
  template <class T>
  static constexpr T derivative(T, T y) {
    return y > 0 ? T(1) : T(0);
  }
};

template <>
struct activation_function<relu6> : detail::slope_from_output {
  template <class T>
  static constexpr T value(T x) {
    return x > 6 ? T(6) : x < 0 ? T(0) : x;
  }
  template <class T>
  static constexpr T derivative(T, T y) {
    return y > 0 && y < 6 ? T(1) : T(0);
  }
};

template <>
struct activation_function<hard_sigmoid> : detail::slope_from_output {
  template <class T>
  static constexpr T value(T x) {
    return activation_function<relu6>::value(x + 3) / 6;
  }
  template <class T>
  static constexpr T derivative(T, T y) {
    return y > 0 && y < 1 ? T(1) / 6 : T(0);
  }
};

template <>
struct activation_function<hard_silu> : detail::slope_from_input {
  template <class T>
  static constexpr T value(T x) {
    return x * activation_function<hard_sigmoid>::value(x);
  }
  template <class T>
  static constexpr T derivative(T x, T) {
    return x > 3 ? T(1) : x > -3 ? (2 * x + 3) / 6 : T(0);
  }
};

template <decimal Scale, decimal Offset>
struct activation_function<scale_and_offset<Scale, Offset>> : detail::slope_from_output {
  template <class T>
  static constexpr T value(T x) {
    return detail::rounded(x * T(Scale.value())) + T(Offset.value());
  }
  template <class T>
  static constexpr T derivative(T, T) {
    return T(Scale.value());
  }
};

template <decimal Slope>
struct activation_function<leaky_relu<Slope>> : detail::slope_from_output {
  template <class T>
  static constexpr T value(T x) {
    return x > 0 ? x : T(Slope.value()) * x;
  }
  template <class T>
  static constexpr T derivative(T, T y) {
    return y > 0 ? T(1) : T(Slope.value());
  }
};

template <decimal Alpha>
struct activation_function<elu<Alpha>> : detail::slope_from_output {
  template <class T>
  static constexpr T value(T x) {
    using std::expm1;
    return x > 0 ? x : T(Alpha.value()) * expm1(x);
  }
  template <class T>
  static constexpr T derivative(T, T y) {
    return y > 0 ? T(1) : y + T(Alpha.value());
  }
};

template <>
struct activation_function<selu> : detail::slope_from_output {
  template <class T>
  static constexpr T value(T x) {
    using std::expm1;
    return T(selu::scale) * (x > 0 ? x : T(selu::alpha) * expm1(x));
  }
  template <class T>
  static constexpr T derivative(T, T y) {
    return y > 0 ? T(selu::scale) : y + T(selu::scale * selu::alpha);
  }
};

template <>
struct activation_function<sigmoid> : detail::slope_from_output {
  template <class T>
  static constexpr T value(T x) {
    using std::exp;
    return 1 / (1 + exp(-x));
  }
  template <class T>
  static constexpr T derivative(T, T y) {
    return y * (1 - y);
  }
};

template <>
struct activation_function<tanh_activation> : detail::slope_from_output {
  template <class T>
  static constexpr T value(T x) {
    using std::tanh;
    return tanh(x);
  }
  template <class T>
  static constexpr T derivative(T, T y) {
    return 1 - y * y;
  }
};

template <>
struct activation_function<softplus> : detail::slope_from_output {
  /// Does not overflow for large x, and does not round to 0 for very negative x.
  template <class T>
  static constexpr T value(T x) {
    using std::abs, std::exp, std::log1p;
    return (x > 0 ? x : T(0)) + log1p(exp(-abs(x)));
  }
  /// sigmoid(x) = 1 - exp(-y)
  template <class T>
  static constexpr T derivative(T, T y) {
    using std::expm1;
    return -expm1(-y);
  }
};

template <>
struct activation_function<softsign> : detail::slope_from_output {
  template <class T>
  static constexpr T value(T x) {
    return x / (1 + (x < 0 ? -x : x));
  }
  /// 1 / (1 + |x|)^2, and 1 - |y| = 1 / (1 + |x|)
  template <class T>
  static constexpr T derivative(T, T y) {
    return (1 - (y < 0 ? -y : y)) * (1 - (y < 0 ? -y : y));
  }
};

template <>
struct activation_function<silu> : detail::slope_from_input {
  template <class T>
  static constexpr T value(T x) {
    using std::exp;
    return x / (1 + exp(-x));
  }
  template <class T>
  static constexpr T derivative(T x, T) {
    const T s = activation_function<sigmoid>::value(x);
    return s * (1 + x * (1 - s));
  }
};

template <>
struct activation_function<gelu> : detail::slope_from_input {
  /// P(X <= x) of a standard normal X. erfc keeps the digits of the left tail.
  template <class T>
  static constexpr T probability(T x) {
    using std::erfc;
    return erfc(-x / std::numbers::sqrt2_v<T>) / 2;
  }
  template <class T>
  static constexpr T value(T x) {
    return x * probability(x);
  }
  template <class T>
  static constexpr T derivative(T x, T) {
    using std::exp;
    constexpr T inverse_sqrt_two_pi = std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T>;
    return probability(x) + x * inverse_sqrt_two_pi * exp(-x * x / 2);
  }
};

template <>
struct activation_function<gelu_approximate> : detail::slope_from_input {
  template <class T>
  static constexpr T sqrt_two_over_pi = std::numbers::sqrt2_v<T> * std::numbers::inv_sqrtpi_v<T>;
  template <class T>
  static constexpr T cubic = T(0.044715);

  template <class T>
  static constexpr T value(T x) {
    using std::tanh;
    return x / 2 * (1 + tanh(sqrt_two_over_pi<T> * (x + cubic<T> * x * x * x)));
  }
  template <class T>
  static constexpr T derivative(T x, T) {
    using std::tanh;
    const T t = tanh(sqrt_two_over_pi<T> * (x + cubic<T> * x * x * x));
    return (1 + t) / 2 + x / 2 * (1 - t * t) * sqrt_two_over_pi<T> * (1 + 3 * cubic<T> * x * x);
  }
};
}  // namespace core

}  // namespace strata
