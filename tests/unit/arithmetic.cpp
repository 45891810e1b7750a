// The text by which builds with different arithmetic detect each other; tests/targets compares it between targets.
// flags: -ffast-math -fno-finite-math-only
#include <doctest/doctest.h>

#include <strata/base/arithmetic.hpp>
#include <string>

using namespace strata::detail;

TEST_CASE("with -ffast-math, the bits depend on the compiler") {
  const std::string text = text_of_arithmetic();
  CHECK(text.starts_with(text_of({"arithmetic ", arithmetic_version, " with"})));
  CHECK(text.find(" fused multiply-add and -ffast-math of " __VERSION__ " for ") != text.npos);
}

TEST_CASE("a snapshot of another build") {
  CHECK(notice_of_arithmetic("s", text_of_arithmetic()).empty());
  CHECK(notice_of_arithmetic("s", "").starts_with(
      "s was written by a build with unknown arithmetic, but this one has arithmetic "));
}
