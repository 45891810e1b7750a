// printf into a string. A formatting library in headers would cost each program five seconds of compilation with -O3.
#pragma once
#include <cstdarg>
#include <cstdio>
#include <string>

namespace strata::detail {

/// What std::printf would print.
[[gnu::format(printf, 1, 2), gnu::noinline]] inline std::string formatted(const char* pattern, ...) {
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

}  // namespace strata::detail
