// Real numbers as template arguments: dropout<0.5_r>, l2<1e-4_r>.
#pragma once
#include <limits>
#include <strata/base/namespaces.hpp>

namespace strata {

namespace core {
/// mantissa * 10^exponent, exactly as written. A structural type of integers, because clang 14 has no floating-point
/// template arguments; where the compiler has them, a plain 0.5 works as well.
struct decimal {
  long long mantissa = 0;
  int exponent = 0;

  constexpr decimal() = default;
  constexpr decimal(long long m, int e) : mantissa(m), exponent(e) { normalize(); }
  constexpr decimal(int whole) : decimal(whole, 0) {}
  /// The shortest decimal that rounds to v.
  constexpr decimal(double v) {
    for (exponent = 0; exponent > -18 && v != 0; --exponent) {
      double scaled = v;
      for (int i = exponent; i < 0; ++i) scaled *= 10;
      if (scaled > 9e17 || scaled < -9e17) break;
      mantissa = static_cast<long long>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
      if (value() == v) break;
    }
    normalize();
  }

  constexpr double value() const {
    double power = 1;
    for (int i = exponent < 0 ? -exponent : exponent; i > 0; --i) power *= 10;
    return exponent < 0 ? static_cast<double>(mantissa) / power : static_cast<double>(mantissa) * power;
  }
  constexpr explicit operator double() const { return value(); }
  constexpr decimal operator-() const { return {-mantissa, exponent}; }

  friend constexpr bool operator==(const decimal&, const decimal&) = default;

 private:
  constexpr void normalize() {
    if (mantissa == 0) exponent = 0;
    while (mantissa != 0 && mantissa % 10 == 0) mantissa /= 10, ++exponent;
  }
};
}  // namespace core

namespace detail {
void too_many_digits_in_a_decimal_literal();  // not constexpr: a call of it is the compiler's error

template <char... C>
consteval decimal parse_decimal() {
  constexpr char text[] = {C..., '\0'};
  long long mantissa = 0;
  int exponent = 0, written = 0;
  bool fraction = false, negative = false;
  int i = 0;
  for (; text[i] != '\0' && text[i] != 'e' && text[i] != 'E'; ++i) {
    if (text[i] == '\'') continue;
    if (text[i] == '.') {
      fraction = true;
      continue;
    }
    if (mantissa > (std::numeric_limits<long long>::max() - 9) / 10) too_many_digits_in_a_decimal_literal();
    mantissa = mantissa * 10 + (text[i] - '0');
    if (fraction) --exponent;
  }
  if (text[i] != '\0') {
    ++i;
    if (text[i] == '-' || text[i] == '+') negative = text[i++] == '-';
    for (; text[i] != '\0'; ++i) written = written * 10 + (text[i] - '0');
  }
  return {mantissa, exponent + (negative ? -written : written)};
}
}  // namespace detail

inline namespace literals {
template <char... C>
consteval core::decimal operator""_r() {
  return detail::parse_decimal<C...>();
}
}  // namespace literals

}  // namespace strata
