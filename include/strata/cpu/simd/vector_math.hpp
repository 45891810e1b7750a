// Functions on vectors for activations and losses. In their domain, each has an error of a few units in the last place. nan stays
// nan.
#pragma once
#include <strata/cpu/simd/simd.hpp>

namespace strata::simd {

namespace detail {
/// c0 + x (c1 + x (c2 + ...)), where coefficient(k) is c_k as a constant expression.
template <int Terms, class T, class Coefficient>
STRATA_INLINE inline vec<T> polynomial(vec<T> x, Coefficient coefficient) {
  vec<T> p = broadcast(T(coefficient(std::integral_constant<int, Terms - 1>{})));
  unroll<Terms - 1>([&](auto i) STRATA_INLINE {
    p = multiply_add(p, x, broadcast(T(coefficient(std::integral_constant<int, Terms - 2 - i>{}))));
  });
  return p;
}

/// log((1 + s) / (1 - s)), by its series.
template <int Terms, class T>
STRATA_INLINE inline vec<T> log_of_quotient(vec<T> s) {
  vec<T> y = T(2) * s * polynomial<Terms, T>(s * s, [](auto k) STRATA_INLINE { return 1. / (2 * k + 1); });
  keep(y);  // compilers differ in what they fuse with the product
  return y;
}
}  // namespace detail

/// e^x - 1 for x <= 0, which does not cancel near 0.
template <class T>
STRATA_INLINE inline vec<T> expm1_of_negative(vec<T> x) {
  using I = integers<T>;
  constexpr bool single = sizeof(T) == 4;
  constexpr int terms = single ? 7 : 13, mantissa_bits = single ? 23 : 52, bias = single ? 127 : 1023;
  constexpr T lowest = T(single ? -18 : -38);  // below this, the result is -1
  constexpr T log2_e = T(1.44269504088896340736), ln2_high = single ? T(0.693145751953125) : T(6.93147180369123816490e-01),
              ln2_low = single ? T(1.42860682030941723212e-6) : T(1.90821492927058770002e-10);
  x = x < lowest ? broadcast(lowest) : x;
  const I n = __builtin_convertvector(multiply_add(x, broadcast(log2_e), broadcast(T(-0.5))), I);
  const vec<T> whole = __builtin_convertvector(n, vec<T>);
  const vec<T> r = multiply_add(whole, broadcast(-ln2_low), multiply_add(whole, broadcast(-ln2_high), x));
  const vec<T> power = (vec<T>)((n + bias) << mantissa_bits);
  const vec<T> m = r * detail::polynomial<terms, T>(r, [](auto k) STRATA_INLINE {
                     double c = 1;
                     for (int i = 2; i <= k + 1; ++i) c /= i;
                     return c;
                   });
  return multiply_add(power, m, power - T(1));
}

/// log(1 + x) for 0 <= x <= 1.
template <class T>
STRATA_INLINE inline vec<T> log1p_of_fraction(vec<T> x) {
  return detail::log_of_quotient < sizeof(T) == 4 ? 8 : 17, T > (x / (T(2) + x));
}

/// log(x) for finite x > 0 that are not denormal: x = m 2^n with m around 1.
template <class T>
STRATA_INLINE inline vec<T> log(vec<T> x) {
  using I = integers<T>;
  constexpr bool single = sizeof(T) == 4;
  constexpr int mantissa_bits = single ? 23 : 52, bias = single ? 127 : 1023;
  constexpr T ln2_high = single ? T(0.693145751953125) : T(6.93147180369123816490e-01),
              ln2_low = single ? T(1.42860682030941723212e-6) : T(1.90821492927058770002e-10), root2 = T(1.41421356237309504880);
  const I bits = (I)x;
  const vec<T> exponent = __builtin_convertvector((bits >> mantissa_bits) - bias, vec<T>);
  const vec<T> m = (vec<T>)(bits - ((bits >> mantissa_bits) << mantissa_bits) + (I)broadcast(T(1)));
  const I large = m > root2;
  const vec<T> near = large ? m * T(0.5) : m, n = large ? exponent + T(1) : exponent;
  const vec<T> rest = detail::log_of_quotient<single ? 5 : 11, T>((near - T(1)) / (near + T(1)));
  const vec<T> y = multiply_add(n, broadcast(ln2_high), multiply_add(n, broadcast(ln2_low), rest));
  return x == x ? y : x;
}

/// Returns P(X <= x) of a standard normal X. bell: e^(-x^2 / 2).
template <class T>
STRATA_INLINE inline vec<T> normal_probability(vec<T> x, vec<T>& bell) {
  // P(X > a) = bell * t * p(t) with t = 1 / (1 + 0.3 a). p is a Chebyshev series, whose error is relative even in the tail.
  constexpr double single[] = {0.2219706134,   0.1645795469,    0.08654966967,    0.02775907704,
                               0.001816763076, -0.002416392571, -0.0005740814507, 0.0002653205781,
                               8.725423554e-5, -2.889905543e-5, -8.877314093e-6};
  constexpr double twice[] = {
      0.2219706138344327874,     0.1645794840861585917,      0.08654963741846457469,     0.02776036547409214314,
      0.001817135795358689084,   -0.002423896557628422629,   -0.0005756425134548741783,  0.0002836370314946860295,
      0.00009013989136884382086, -0.00004974711310757140757, -0.00001112539712699892559, 0.0000107343578351488853,
      2.438677546915002021e-7,   -2.257674386212720691e-6,   5.202524999663126216e-7,    3.670102801071315756e-7,
      -2.343813580122580984e-7,  -2.337058114613562666e-8,   6.313703090757922544e-8,    -6.905130147216137126e-9,
      -1.073942151240407421e-8,  1.600758089721414194e-9,    8.946658346894151088e-10};
  const vec<T> a = x < T(0) ? -x : x, one = broadcast(T(1)), t = one / multiply_add(broadcast(T(0.3)), a, one),
               u = multiply_add(broadcast(T(2)), t, -one);
  bell = simd::exp<T>(T(-0.5) * x * x);
  vec<T> p;
  if constexpr (sizeof(T) == 4)
    p = detail::polynomial<11, T>(u, [](auto k) STRATA_INLINE { return single[k]; });
  else
    p = detail::polynomial<23, T>(u, [](auto k) STRATA_INLINE { return twice[k]; });
  vec<T> tail = bell * t * p;
  keep(tail);
  return x < T(0) ? tail : T(1) - tail;
}

}  // namespace strata::simd
