// Definitions of text.hpp.
#pragma once
#include <charconv>
#include <cstdio>
#include <strata/base/c_locale.hpp>

namespace strata::detail {

STRATA_FUNCTION std::string formatted(const char* pattern, ...) {
  const c_locale guard;
  std::va_list arguments, again;
  va_start(arguments, pattern);
  va_copy(again, arguments);
  const int size = std::vsnprintf(nullptr, 0, pattern, arguments);
  va_end(arguments);
  std::string text(size > 0 ? static_cast<std::size_t>(size) : 0, '\0');
  if (size > 0) std::vsnprintf(text.data(), text.size() + 1, pattern, again);
  va_end(again);
  return text;
}

STRATA_FUNCTION text_piece::text_piece(long long n)
    : begin_(own_), size_(static_cast<std::size_t>(std::to_chars(own_, own_ + sizeof own_, n).ptr - own_)) {}
STRATA_FUNCTION text_piece::text_piece(unsigned long long n)
    : begin_(own_), size_(static_cast<std::size_t>(std::to_chars(own_, own_ + sizeof own_, n).ptr - own_)) {}
STRATA_FUNCTION text_piece::text_piece(double x) : begin_(own_) {
  if (x != x) x = __builtin_nan("");  // drops its sign, which depends on the kernel that made it
  const bool is_whole = x > -1e15 && x < 1e15 && x == static_cast<double>(static_cast<long long>(x));
  const auto format = is_whole ? std::chars_format::fixed : std::chars_format::general;
  size_ = static_cast<std::size_t>(std::to_chars(own_, own_ + sizeof own_, x, format, is_whole ? 0 : 6).ptr - own_);
}

STRATA_FUNCTION std::string lower_case(std::string text) {
  for (char& c : text)
    if ('A' <= c && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

STRATA_FUNCTION std::string text_of(std::initializer_list<text_piece> pieces) {
  std::size_t size = 0;
  for (const text_piece& p : pieces) size += p.view().size();
  std::string text;
  text.reserve(size);
  for (const text_piece& p : pieces) text.append(p.view());
  return text;
}

/// Returns the bytes of the first character, and stores its code point; 0 if they are not UTF-8.
inline std::size_t read_utf8(std::string_view text, unsigned& c) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(text[i])); };
  const unsigned first = byte(0);
  const std::size_t size = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  if (size > text.size()) return 0;
  c = size < 2 ? first : first & (0x7Fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    c = c << 6 | (byte(i) & 0x3F);
  }
  const bool longer_than_needed = (size == 3 && c < 0x800) || (size == 4 && c < 0x10000);
  return longer_than_needed || (c >= 0xD800 && c < 0xE000) || c > 0x10FFFF ? 0 : size;
}

/// Control and format characters, and blanks other than ' '.
inline bool is_invisible(unsigned c) {
  constexpr unsigned ranges[][2] = {{0, 0x1F},        {0x7F, 0xA0},     {0xAD, 0xAD},     {0x61C, 0x61C},
                                    {0x180E, 0x180E}, {0x2000, 0x200F}, {0x2028, 0x202F}, {0x205F, 0x206F},
                                    {0x3000, 0x3000}, {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE007F}};
  for (const auto& [first, last] : ranges)
    if (c <= last) return c >= first;
  return false;
}

STRATA_FUNCTION std::string visible(std::string_view text, bool lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    unsigned c = 0;
    std::size_t size = read_utf8(text, c);
    if (size == 0)
      out += formatted("\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(text[size++])));
    else if (!is_invisible(c) || (c == '\n' && lines))
      out += text.substr(0, size);
    else
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : formatted(size == 1 ? "\\x%02x" : "\\u%04x", c);
    text.remove_prefix(size);
  }
  return out;
}

STRATA_FUNCTION std::string shown(std::string_view text) {
  constexpr std::size_t most = 100;
  std::size_t size = text.size() < most ? text.size() : most;
  while (size < text.size() && size > most - 4 && (text[size] & 0xC0) == 0x80) --size;  // not within a character
  return text_of({visible(text.substr(0, size)), size < text.size() ? "..." : ""});
}

STRATA_FUNCTION std::string quoted(std::string_view text) { return text_of({'\'', shown(text), '\''}); }

}  // namespace strata::detail
