// Activations on vectors that are made of exponentials, and slopes that follow from the input.
#pragma once
#include <numbers>
#include <strata/cpu/simd/vector_activation.hpp>
#include <strata/cpu/simd/vector_math.hpp>

namespace strata::simd {

template <decimal Alpha>
struct vector_activation<elu<Alpha>> {
  template <class T>
  STRATA_INLINE static vec<T> value(vec<T> x) {
    const vec<T> below = T(Alpha.value()) * expm1_of_negative<T>(x > T(0) ? vec<T>{} : x);
    return x > T(0) ? x : below;
  }
  template <class T>
  STRATA_INLINE static vec<T> derivative(vec<T> y) {
    return y > T(0) ? broadcast(T(1)) : y + T(Alpha.value());
  }
};

template <>
struct vector_activation<selu> {
  template <class T>
  STRATA_INLINE static vec<T> value(vec<T> x) {
    const vec<T> below = T(selu::scale * selu::alpha) * expm1_of_negative<T>(x > T(0) ? vec<T>{} : x);
    return x > T(0) ? T(selu::scale) * x : below;
  }
  template <class T>
  STRATA_INLINE static vec<T> derivative(vec<T> y) {
    return y > T(0) ? broadcast(T(selu::scale)) : y + T(selu::scale * selu::alpha);
  }
};

template <>
struct vector_activation<softplus> {
  template <class T>
  STRATA_INLINE static vec<T> value(vec<T> x) {
    return (x > T(0) ? x : vec<T>{}) + log1p_of_fraction<T>(simd::exp<T>(x > T(0) ? -x : x));
  }
  template <class T>
  STRATA_INLINE static vec<T> derivative(vec<T> y) {
    return -expm1_of_negative<T>(-y);
  }
};

template <>
struct vector_activation<softsign> {
  template <class T>
  STRATA_INLINE static vec<T> value(vec<T> x) {
    return x / (T(1) + (x < T(0) ? -x : x));
  }
  template <class T>
  STRATA_INLINE static vec<T> derivative(vec<T> y) {
    const vec<T> d = T(1) - (y < T(0) ? -y : y);
    return d * d;
  }
};

template <>
struct vector_activation<silu> {
  template <class T>
  STRATA_INLINE static vec<T> value(vec<T> x) {
    return x / (T(1) + simd::exp<T>(-x));
  }
};

template <>
struct vector_activation<hard_silu> {
  template <class T>
  STRATA_INLINE static vec<T> value(vec<T> x) {
    return x * vector_activation<hard_sigmoid>::template value<T>(x);
  }
};

template <>
struct vector_activation<gelu> {
  template <class T>
  STRATA_INLINE static vec<T> value(vec<T> x) {
    vec<T> bell;
    return x * normal_probability<T>(x, bell);
  }
};

template <>
struct vector_activation<gelu_approximate> {
  static constexpr double slope = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi, cubic = 0.044715;

  /// (1 + tanh(u)) / 2 = sigmoid(2 u), which keeps the digits of the left tail.
  template <class T>
  STRATA_INLINE static vec<T> gate(vec<T> x) {
    return simd::sigmoid<T>(T(slope) * x * multiply_add(T(cubic) * x, x, broadcast(T(1))));
  }
  template <class T>
  STRATA_INLINE static vec<T> value(vec<T> x) {
    return x * gate<T>(x);
  }
};

/// The slope of an activation with input x and result y. It reads one of the two: activation_function says which.
template <class A>
struct vector_slope {
  template <class T>
  STRATA_INLINE static vec<T> at(vec<T>, vec<T> y) {
    return vector_activation<A>::template derivative<T>(y);
  }
};

template <>
struct vector_slope<silu> {
  template <class T>
  STRATA_INLINE static vec<T> at(vec<T> x, vec<T>) {
    const vec<T> s = simd::sigmoid<T>(x);
    return s * multiply_add(x, T(1) - s, broadcast(T(1)));
  }
};

template <>
struct vector_slope<hard_silu> {
  template <class T>
  STRATA_INLINE static vec<T> at(vec<T> x, vec<T>) {
    const vec<T> between = x > broadcast(T(-3)) ? (x + x + T(3)) / T(6) : vec<T>{};
    return x > broadcast(T(3)) ? broadcast(T(1)) : between;
  }
};

template <>
struct vector_slope<gelu> {
  template <class T>
  STRATA_INLINE static vec<T> at(vec<T> x, vec<T>) {
    constexpr T height = std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T>;
    vec<T> bell;
    const vec<T> p = normal_probability<T>(x, bell);
    return multiply_add(x * height, bell, p);
  }
};

template <>
struct vector_slope<gelu_approximate> {
  template <class T>
  STRATA_INLINE static vec<T> at(vec<T> x, vec<T>) {
    using of = vector_activation<gelu_approximate>;
    const vec<T> s = of::gate<T>(x);
    const vec<T> of_argument = multiply_add(T(3 * of::slope * of::cubic) * x, x, broadcast(T(of::slope)));
    return multiply_add(x * s * (T(1) - s), of_argument, s);
  }
};

/// Whether an activation has vector code. Others are computed element by element.
template <class A>
inline constexpr bool has_vector_form = false;
template <>
inline constexpr bool has_vector_form<relu> = true;
template <>
inline constexpr bool has_vector_form<relu6> = true;
template <>
inline constexpr bool has_vector_form<hard_sigmoid> = true;
template <>
inline constexpr bool has_vector_form<hard_silu> = true;
template <decimal Scale, decimal Offset>
inline constexpr bool has_vector_form<scale_and_offset<Scale, Offset>> = true;
template <decimal Slope>
inline constexpr bool has_vector_form<leaky_relu<Slope>> = true;
template <decimal Alpha>
inline constexpr bool has_vector_form<elu<Alpha>> = true;
template <>
inline constexpr bool has_vector_form<selu> = true;
template <>
inline constexpr bool has_vector_form<strata::sigmoid> = true;
template <>
inline constexpr bool has_vector_form<tanh_activation> = true;
template <>
inline constexpr bool has_vector_form<softplus> = true;
template <>
inline constexpr bool has_vector_form<softsign> = true;
template <>
inline constexpr bool has_vector_form<silu> = true;
template <>
inline constexpr bool has_vector_form<gelu> = true;
template <>
inline constexpr bool has_vector_form<gelu_approximate> = true;

}  // namespace strata::simd
