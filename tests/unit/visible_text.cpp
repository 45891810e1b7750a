// Text from files and the environment in errors: it contains no control sequences and no invisible characters.
#include <doctest/doctest.h>

#include <strata/base/error.hpp>
#include <strata/base/shape_text.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "error_of.hpp"
using namespace strata;
using namespace strata::test;
using detail::shown;
using detail::visible;
using std::string_literals::operator""s;

TEST_CASE("what cannot be seen is escaped, other text stays as it is") {
  CHECK(visible("plain, 'quotes', C:\\x") == "plain, 'quotes', C:\\x");
  CHECK(visible("größer 数字 😀") == "größer 数字 😀");
  CHECK(visible("\x1b[31mred\a\x7f\0end"s) == "\\x1b[31mred\\x07\\x7f\\x00end");
  CHECK(visible("a\tb\r\nc") == "a\\tb\\r\\nc");
  CHECK(visible("a\tb\r\nc", true) == "a\\tb\\r\nc");
  CHECK(visible("\u0085\u00a0\u00ad\u200b\u202e\ufeff\U000e0041") == "\\u0085\\u00a0\\u00ad\\u200b\\u202e\\ufeff\\ue0041");
  CHECK(visible("\ud7ff\ue000\U0010ffff") == "\ud7ff\ue000\U0010ffff");
  CHECK(visible("") == "");
}

TEST_CASE("bytes that are not UTF-8 are escaped one by one") {
  CHECK(visible("\xe4ndern") == "\\xe4ndern");                              // Latin-1
  CHECK(visible("\xe4\xb8") == "\\xe4\\xb8");                               // cut
  CHECK(visible("\xc0\x80 \xe0\x80\x80") == "\\xc0\\x80 \\xe0\\x80\\x80");  // longer than needed
  CHECK(visible("\xed\xa0\x80") == "\\xed\\xa0\\x80");                      // half of a surrogate pair
  CHECK(visible("\xf4\x90\x80\x80\xff") == "\\xf4\\x90\\x80\\x80\\xff");    // beyond Unicode
}

TEST_CASE("long names are cut between characters") {
  const std::string almost(99, 'x');
  CHECK(shown(almost + "y") == almost + "y");
  CHECK(shown(almost + "yz") == almost + "y...");
  CHECK(shown(almost + "ä") == almost + "...");
  CHECK(shown(std::string(101, '\x80')).ends_with("\\x80..."));
  CHECK(detail::first_names(std::vector{"a\nb"s, almost + "yz"}) == "a\\nb, " + almost + "y...");
}

TEST_CASE("no error sends control characters to a terminal, or ends at a NUL") {
  CHECK(error_of([] { throw_error({"file: there is no '", "\x1b]0;title\a", "'"}); }) ==
        "file: there is no '\\x1b]0;title\\x07'");
  CHECK(error_of([] { throw_error("two lines\nof \0text"s); }) == "two lines\nof \\x00text");
}
