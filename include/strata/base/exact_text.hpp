// Numbers as text that reads back to the same value.
#pragma once
#include <charconv>
#include <iterator>
#include <string>

namespace strata::detail {

/// The shortest digits that read back to the same value, in any locale.
template <class Number>
std::string exact_text(Number value) {
  char digits[64];
  return {digits, std::to_chars(std::begin(digits), std::end(digits), value).ptr};
}

}  // namespace strata::detail
