// The text of an error. (doctest 2.4.8, which Ubuntu 22.04 has, compares the text of exceptions with literals only.)
#pragma once
#include <strata/base/error.hpp>
#include <string>

namespace strata::test {

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace strata::test
