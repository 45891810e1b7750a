// Texts from pieces and printf patterns. A header-only formatting library would cost each program five seconds of compilation
// with -O3; concatenating with `+` costs milliseconds per expression, and g++ 12 warns about it (-Wrestrict) at -O3.
#pragma once
#include <cstdarg>
#include <cstddef>
#include <initializer_list>
#include <strata/base/linkage.hpp>
#include <string>
#include <string_view>

namespace strata::detail {

/// The output of std::printf in the C locale, whatever locale the program has set: files, and texts that processes compare, must
/// not depend on it.
[[gnu::format(printf, 1, 2), gnu::cold]] std::string formatted(const char* pattern, ...);

/// One piece of a text: a string, a character, or a number. It refers to the string. Reals have six digits, and integral values
/// no point, in every locale.
class text_piece {
  char own_[40];
  const char* begin_;
  std::size_t size_;

 public:
  text_piece(std::string_view s) : begin_(s.data()), size_(s.size()) {}
  text_piece(const std::string& s) : begin_(s.data()), size_(s.size()) {}
  [[gnu::cold, gnu::noinline]] text_piece(const char* s) : begin_(s), size_(std::char_traits<char>::length(s)) {}
  text_piece(char c) : own_{c}, begin_(own_), size_(1) {}
  text_piece(int n) : text_piece(static_cast<long long>(n)) {}
  text_piece(long n) : text_piece(static_cast<long long>(n)) {}
  [[gnu::cold]] text_piece(long long n);
  text_piece(unsigned n) : text_piece(static_cast<unsigned long long>(n)) {}
  text_piece(unsigned long n) : text_piece(static_cast<unsigned long long>(n)) {}
  [[gnu::cold]] text_piece(unsigned long long n);
  [[gnu::cold]] text_piece(double x);
  text_piece(const text_piece&) = delete;  // it may point into itself

  std::string_view view() const { return {begin_, size_}; }
};

/// Converts ASCII letters to lower case, in every locale: in some of them I is not the capital letter of i.
[[gnu::cold]] std::string lower_case(std::string text);

/// The pieces one after another: text_of({"epoch ", epoch, ": the data set is empty"}).
[[gnu::cold]] std::string text_of(std::initializer_list<text_piece> pieces);

/// Text from outside in a form that messages may show: control characters, invisible characters and bytes that are not UTF-8 are
/// escaped, such as \x1b and \u200b. Line ends are kept if `lines` is true.
[[gnu::cold]] std::string visible(std::string_view text, bool lines = false);
/// A name or a value from outside for a message: visible() and shortened.
[[gnu::cold]] std::string shown(std::string_view text);
/// The same between quotes: 'name'.
[[gnu::cold]] std::string quoted(std::string_view text);

}  // namespace strata::detail

#if STRATA_DEFINES
#include <strata/base/text.ipp>
#endif
