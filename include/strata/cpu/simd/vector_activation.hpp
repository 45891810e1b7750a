// Activations on vectors, as epilogues of the kernels that compute their input: the general form, and those made of few
// operations.
#pragma once
#include <strata/cpu/simd/simd.hpp>
#include <strata/reference/activation_functions.hpp>

namespace strata::simd {

/// An activation that a kernel can apply to its result in registers: the slope follows from the result, so the input need not be
/// kept.
template <class A>
concept follows_in_registers = elementwise_activation<A> && !activation_function<A>::uses_input;

/// `value(x)` and `derivative(y)`. The general form works lane by lane.
template <class A>
struct vector_activation {
  template <class T>
  [[gnu::noinline]] static void each(vec<T>& v, T (*f)(T)) {
    for (int i = 0; i < lanes<T>; ++i) v[i] = f(v[i]);
  }
  template <class T>
  static vec<T> value(vec<T> x) {
    each<T>(x, [](T s) { return activation_function<A>::value(s); });
    return x;
  }
  template <class T>
  static vec<T> derivative(vec<T> y) {
    each<T>(y, [](T s) { return activation_function<A>::derivative(T{}, s); });
    return y;
  }
};

template <>
struct vector_activation<linear> {
  template <class T>
  STRATA_INLINE static vec<T> value(vec<T> x) {
    return x;
  }
  template <class T>
  STRATA_INLINE static vec<T> derivative(vec<T>) {
    return broadcast(T(1));
  }
};

template <>
struct vector_activation<relu> {
  template <class T>
  STRATA_INLINE static vec<T> value(vec<T> x) {
    return x < vec<T>{} ? vec<T>{} : x;  // nan stays nan
  }
  template <class T>
  STRATA_INLINE static vec<T> derivative(vec<T> y) {
    return y > vec<T>{} ? broadcast(T(1)) : vec<T>{};
  }
};

template <>
struct vector_activation<relu6> {
  template <class T>
  STRATA_INLINE static vec<T> value(vec<T> x) {
    const vec<T> six = broadcast(T(6));
    x = x < vec<T>{} ? vec<T>{} : x;
    return x > six ? six : x;
  }
  template <class T>
  STRATA_INLINE static vec<T> derivative(vec<T> y) {
    const vec<T> one = broadcast(T(1)), below = y < broadcast(T(6)) ? one : vec<T>{};
    return y > vec<T>{} ? below : vec<T>{};
  }
};

template <>
struct vector_activation<hard_sigmoid> {
  template <class T>
  STRATA_INLINE static vec<T> value(vec<T> x) {
    return vector_activation<relu6>::template value<T>(x + T(3)) / T(6);
  }
  template <class T>
  STRATA_INLINE static vec<T> derivative(vec<T> y) {
    const vec<T> below = y < broadcast(T(1)) ? broadcast(T(1) / T(6)) : vec<T>{};
    return y > vec<T>{} ? below : vec<T>{};
  }
};

template <decimal Scale, decimal Offset>
struct vector_activation<scale_and_offset<Scale, Offset>> {
  template <class T>
  STRATA_INLINE static vec<T> value(vec<T> x) {
    return strata::detail::rounded(vec<T>(x * T(Scale.value()))) + T(Offset.value());
  }
  template <class T>
  STRATA_INLINE static vec<T> derivative(vec<T>) {
    return broadcast(T(Scale.value()));
  }
};

template <decimal Slope>
struct vector_activation<leaky_relu<Slope>> {
  template <class T>
  STRATA_INLINE static vec<T> value(vec<T> x) {
    constexpr T slope = T(Slope.value());
    const vec<T> below = x * slope;
    return x > vec<T>{} ? x : below;
  }
  template <class T>
  STRATA_INLINE static vec<T> derivative(vec<T> y) {
    return y > vec<T>{} ? broadcast(T(1)) : broadcast(T(Slope.value()));
  }
};

template <>
struct vector_activation<strata::sigmoid> {
  template <class T>
  static vec<T> value(vec<T> x) {
    return simd::sigmoid<T>(x);
  }
  template <class T>
  STRATA_INLINE static vec<T> derivative(vec<T> y) {
    return y * (T(1) - y);
  }
};

template <>
struct vector_activation<tanh_activation> {
  template <class T>
  static vec<T> value(vec<T> x) {
    return simd::tanh<T>(x);
  }
  template <class T>
  STRATA_INLINE static vec<T> derivative(vec<T> y) {
    return multiply_add(-y, y, broadcast(T(1)));
  }
};

/// dz = dy * slope, where the activation has the result y; n elements. dz may be dy.
template <class A, class T>
[[gnu::noinline]] void through_activation(const T* dy, const T* y, T* dz, int n) {
  constexpr int L = lanes<T>;
  int i = 0;
  for (; i + L <= n; i += L) store(dz + i, load(dy + i) * vector_activation<A>::template derivative<T>(load(y + i)));
  if (i < n)
    store_first(dz + i, load_first(dy + i, n - i) * vector_activation<A>::template derivative<T>(load_first(y + i, n - i)),
                n - i);
}

}  // namespace strata::simd
