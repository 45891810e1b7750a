// Arithmetic of optimizer rules for vectors of the CPU.
#pragma once
#include <strata/cpu/simd/vector_math.hpp>
#include <strata/optimizers/elementwise.hpp>

namespace strata::detail {

/// The functions that optimizer rules call, for vectors of T.
template <class T>
struct elementwise_of_vector {
  using V = simd::vec<T>;
  static V all_zeros() { return simd::broadcast(T(0)); }
  static V square_root(V x) { return simd::sqrt<T>(x); }
  static V rounded(V x) {
    simd::keep(x);
    return x;
  }
  template <class U>
  static V power(V x, U exponent) {
    return simd::exp<U>(exponent * simd::log<U>(x));
  }
};
template <>
struct elementwise<simd::vec<float>> : elementwise_of_vector<float> {};
template <>
struct elementwise<simd::vec<double>> : elementwise_of_vector<double> {};

}  // namespace strata::detail
