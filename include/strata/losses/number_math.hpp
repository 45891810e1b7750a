// Functions of one value, for formulas that are written once for scalars and for vectors.
#pragma once
#include <cmath>
#include <strata/base/rounded.hpp>

namespace strata::detail {

/// Backends have a counterpart with the same members for their vectors. Arguments of log and power are not negative.
template <class T>
struct number_math {
  using number = T;
  using value = T;

  static constexpr T rounded(T x) { return detail::rounded(x); }
  static constexpr T log(T x) { return std::log(x); }
  static constexpr T power(T x, double exponent) { return std::pow(x, T(exponent)); }
  static constexpr T tanh(T x) { return std::tanh(x); }
  /// exp(x) for x <= 0, and log(1 + x) for 0 <= x <= 1.
  static constexpr T exp_of_negative(T x) { return std::exp(x); }
  static constexpr T log1p_of_fraction(T x) { return std::log1p(x); }
};

/// x as a scalar, or in each element of a vector.
template <class M>
constexpr typename M::value spread_over(double x) {
  return typename M::number(x) - typename M::value{};
}
/// |x|. nan stays nan, as in the functions below.
template <class M>
constexpr typename M::value magnitude(typename M::value x) {
  return x < typename M::number(0) ? -x : x;
}
template <class M>
constexpr typename M::value at_least(typename M::value x, double lowest) {
  const typename M::value bound = spread_over<M>(lowest);
  return x < bound ? bound : x;
}
template <class M>
constexpr typename M::value at_most(typename M::value x, double highest) {
  const typename M::value bound = spread_over<M>(highest);
  return x > bound ? bound : x;
}

/// x^exponent for x >= 0. Small whole exponents are products.
template <class M>
constexpr typename M::value power(typename M::value x, double exponent) {
  if (exponent != double(int(exponent)) || exponent < 0 || exponent > 8) return M::power(x, exponent);
  typename M::value product = spread_over<M>(1);
  for (int i = 0; i < int(exponent); ++i) product *= x;
  return product;
}

}  // namespace strata::detail
