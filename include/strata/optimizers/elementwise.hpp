// Arithmetic for optimizer rules, on scalars or vectors.
#pragma once
#include <cmath>
#include <strata/base/rounded.hpp>

namespace strata::detail {

/// Arithmetic on V. Backends specialise it for their vectors.
template <class V>
struct elementwise {
  static constexpr V square_root(V x) { return std::sqrt(x); }
  static constexpr V power(V x, V exponent) { return std::pow(x, exponent); }
  static constexpr V rounded(V x) { return detail::rounded(x); }
  static constexpr V all_zeros() { return V{}; }
};

/// a * b, rounded before it is added to anything. Otherwise a compiler may fuse a product with a sum in one place and not in
/// another, and the bits of the weights would depend on compiler, flags and machine.
template <class V, class W>
constexpr V product(V a, W b) {
  return elementwise<V>::rounded(a * b);
}

/// The root by which a rule divides. It is nan if x is infinite: dividing by a moment that has overflowed would silently stop all
/// further updates of the element.
template <class V>
constexpr V square_root(V x) {
  return elementwise<V>::square_root(x) + (x - x);
}
/// x ^ exponent for x > 0 that is not denormal.
template <class V, class T>
constexpr V power(V x, T exponent) {
  return elementwise<V>::power(x, exponent);
}
template <class V>
constexpr V larger(V a, V b) {
  return a > b ? a : b;
}
/// Zero in each element. nvcc cannot compile V{} in some places if that is a vector.
template <class V>
constexpr V all_zeros() {
  return elementwise<V>::all_zeros();
}
/// s in each element.
template <class V, class T>
constexpr V spread(T s) {
  return s - all_zeros<V>();
}

}  // namespace strata::detail
