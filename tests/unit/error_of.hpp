// The text of an error. (doctest 2.4.8, which Ubuntu 22.04 has, compares the text of exceptions with literals only.)
#pragma once
#include <strata/base/error.hpp>
#include <string>
#include <string_view>

namespace strata::test {

template <class E = strata_error, class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "no error";
}

inline bool contains(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace strata::test
