// std::from_chars, also for reals with a standard library that supports integers only, such as libc++.
#pragma once
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <strata/base/c_locale.hpp>
#include <string>
#include <string_view>
#include <system_error>

namespace strata::detail {

/// The real number at the beginning of a text, in the grammar of std::from_chars.
class real_text {
  std::string_view rest_;

  std::size_t take_while(bool (*belongs)(char)) {
    std::size_t n = 0;
    while (n < rest_.size() && belongs(rest_[n])) ++n;
    rest_.remove_prefix(n);
    return n;
  }
  bool take_word(std::string_view word) {
    if (rest_.size() < word.size()) return false;
    for (std::size_t i = 0; i < word.size(); ++i)
      if ((rest_[i] | 0x20) != word[i]) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_zero(char c) { return c == '0'; }
  static bool is_of_word(char c) { return is_digit(c) || c == '_' || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'); }

 public:
  enum class kind { none, number, infinity, nan } what = kind::none;
  bool negative = false;
  bool zero = false;  // all digits before the exponent are 0
  std::size_t size = 0;

  explicit real_text(std::string_view text) : rest_(text) {
    if (rest_.starts_with('-')) negative = true, rest_.remove_prefix(1);
    if (take_word("nan")) {
      what = kind::nan;
      const std::string_view before = rest_;
      if (rest_.starts_with('(')) {
        rest_.remove_prefix(1), take_while(is_of_word);
        rest_ = rest_.starts_with(')') ? rest_.substr(1) : before;
      }
    } else if (take_word("inf")) {
      what = kind::infinity;
      take_word("inity");
    } else {
      std::size_t zeros = take_while(is_zero), digits = zeros + take_while(is_digit);
      if (rest_.starts_with('.') && (digits > 0 || (rest_.size() > 1 && is_digit(rest_[1])))) {
        rest_.remove_prefix(1);
        if (zeros == digits) {
          const std::size_t more = take_while(is_zero);
          zeros += more, digits += more;
        }
        digits += take_while(is_digit);
      }
      if (digits == 0) return;
      what = kind::number, zero = zeros == digits;
      const std::string_view before = rest_;
      if (take_word("e")) {
        if (rest_.starts_with('-') || rest_.starts_with('+')) rest_.remove_prefix(1);
        if (take_while(is_digit) == 0) rest_ = before;
      }
    }
    size = text.size() - rest_.size();
  }
};

/// std::from_chars(begin, end, to) for reals, implemented by std::strtod.
template <std::floating_point T>
std::from_chars_result read_real(const char* begin, const char* end, T& to) {
  const real_text found({begin, static_cast<std::size_t>(end - begin)});
  if (found.what == real_text::kind::none) return {begin, std::errc::invalid_argument};
  const std::from_chars_result done{begin + found.size, std::errc{}};
  T value = found.what == real_text::kind::nan ? std::numeric_limits<T>::quiet_NaN() : std::numeric_limits<T>::infinity();
  if (found.what == real_text::kind::number) {
    const std::string digits(begin + found.negative, done.ptr);  // strtod needs a terminating zero
    const c_locale guard;
    if constexpr (sizeof(T) == sizeof(float))
      value = std::strtof(digits.c_str(), nullptr);
    else
      value = std::strtod(digits.c_str(), nullptr);
    if (value > std::numeric_limits<T>::max() || (value == 0 && !found.zero)) return {done.ptr, std::errc::result_out_of_range};
  }
  to = found.negative ? -value : value;
  return done;
}

/// std::from_chars(begin, end, to)
template <class T>
std::from_chars_result read_number(const char* begin, const char* end, T& to) {
#ifdef __cpp_lib_to_chars
  return std::from_chars(begin, end, to);
#else
  if constexpr (std::floating_point<T>)
    return read_real(begin, end, to);
  else
    return std::from_chars(begin, end, to);
#endif
}

}  // namespace strata::detail
