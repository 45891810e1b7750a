// Definitions of text.hpp.
#pragma once

namespace strata::detail {

STRATA_FUNCTION std::string formatted(const char* pattern, ...) {
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

STRATA_FUNCTION std::string text_of(std::initializer_list<text_piece> pieces) {
  std::size_t size = 0;
  for (const text_piece& p : pieces) size += p.view().size();
  std::string text;
  text.reserve(size);
  for (const text_piece& p : pieces) text.append(p.view());
  return text;
}

}  // namespace strata::detail
