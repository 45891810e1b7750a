// Reading reals without std::from_chars, as with libc++, has the same results.
#include <doctest/doctest.h>

#include <bit>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <strata/base/read_number.hpp>
#include <string>
#include <system_error>
#include <vector>
using namespace strata;

namespace {

std::uint64_t bits(double v) { return std::bit_cast<std::uint64_t>(v); }
std::uint64_t bits(float v) { return std::bit_cast<std::uint32_t>(v); }

/// The complete result of reading a number, in one line.
template <class T>
std::string told(const std::string& text, std::from_chars_result done, T value) {
  return std::to_string(done.ptr - text.data()) +
         (done.ec == std::errc{}                      ? " good "
          : done.ec == std::errc::result_out_of_range ? " range "
                                                      : " none ") +
         std::to_string(std::isnan(value) ? std::uint64_t{std::signbit(value)} : bits(value));
}

/// Compares with std::from_chars. True if std::from_chars does not read reals.
template <class T>
bool is_the_same(const std::string& text) {
  T ours = 7;
  const auto ended = detail::read_real(text.data(), text.data() + text.size(), ours);
  const std::string got = told(text, ended, ours);
#ifdef __cpp_lib_to_chars
  T theirs = 7;
  const auto done = std::from_chars(text.data(), text.data() + text.size(), theirs);
  const std::string expected = told(text, done, theirs);
  if (got != expected) MESSAGE(text << ": " << got << ", not " << expected);
  return got == expected;
#else
  return !got.empty();
#endif
}

bool are_the_same(const std::vector<std::string>& texts) {
  bool same = true;
  for (const std::string& text : texts) same = is_the_same<double>(text) && is_the_same<float>(text) && same;
  return same;
}

TEST_CASE("texts at the edges of the grammar") {
  CHECK(are_the_same({"",
                      "-",
                      "+",
                      "+1",
                      "--1",
                      " 1",
                      "1 ",
                      ".",
                      "-.",
                      ".e1",
                      "e1",
                      "5.",
                      ".5",
                      "-.5",
                      "5.e1",
                      "5.5.5",
                      "1e",
                      "1e+",
                      "1e-",
                      "1e+-1",
                      "1E5",
                      "1e05",
                      "1e5e5",
                      "0",
                      "-0",
                      "00",
                      "0.",
                      "-0.0",
                      "0e",
                      "0e5",
                      "0e99999999999999999999",
                      "-0.000e-99999999999999999999",
                      "0x10",
                      "0x1p3",
                      "-0x",
                      "1_000",
                      "1,5",
                      "1'000"}));
  CHECK(are_the_same({"inf",     "INF",    "-Inf",     "infinity", "-INFINITY", "infinit",    "infinityx", "in",
                      "i",       "nan",    "-nan",     "NaN",      "nan()",     "nan(12_aZ)", "nan(",      "nan(1",
                      "nan(1 )", "nan(-)", "-nan(x)y", "na",       "n",         "--inf",      "+nan"}));
  CHECK(are_the_same({std::string("1\0002", 3), std::string("\0", 1), std::string("1e\0005", 4), "\x80", "1\xff",
                      "\xe2\x88\x92"
                      "1"}));
}

TEST_CASE("the largest and the smallest numbers, and what is beyond") {
  CHECK(are_the_same({"1.7976931348623157e308",
                      "1.7976931348623158e308",
                      "1.7976931348623159e308",
                      "-1.8e308",
                      "1e309",
                      "-1e99999999999999999999",
                      "3.4028234e38",
                      "3.4028235e38",
                      "3.40282356e38",
                      "3.40282357e38",
                      "-1e39",
                      "4.9e-324",
                      "2.5e-324",
                      "2.4703282292062327e-324",
                      "2.4703282292062328e-324",
                      "2e-324",
                      "-1e-400",
                      "1e-99999999999999999999",
                      "2.2250738585072014e-308",
                      "2.2250738585072011e-308",
                      "1e-310",
                      "1.4e-45",
                      "0.8e-45",
                      "0.7e-45",
                      "-1e-46",
                      "1.1754944e-38",
                      "1e-41",
                      "9007199254740993",
                      "9007199254740992.99999999999999999999",
                      "9007199254740993.00000000000000000001",
                      "16777217",
                      "16777217.000000001"}));
  const std::string zeros(5000, '0'), nines(5000, '9');
  CHECK(are_the_same({"1" + zeros, "1" + zeros + "e-5000", "0." + zeros + "1", "0." + zeros + "1e5001", "-0." + zeros,
                      zeros + "1." + zeros, nines + "e-4990", "0." + nines, "1e" + zeros + "1", "1e-" + zeros, "1." + zeros + "x",
                      zeros + ".e", "nan(" + zeros + ")"}));
}

TEST_CASE("random numbers of all sizes, as shortest and as long texts") {
  std::mt19937_64 random(5);
  bool same = true;
  for (int i = 0; i < 20'000; ++i) {
    const double value = std::bit_cast<double>(random());
    char text[1200];
    int exponent = 0;
    const double numbers[] = {value, double(float(std::ldexp(std::frexp(value, &exponent), int(random() % 300) - 150)))};
    for (const double number : numbers) {
      const int digits = int(random() % 40);
      same = is_the_same<double>(
                 {text, std::size_t(std::snprintf(text, sizeof text, random() % 2 ? "%.*e" : "%.*g", digits, number))}) &&
             same;
      same = is_the_same<float>(text) && same;
    }
  }
  CHECK(same);
}

TEST_CASE("random texts of the characters of numbers") {
  constexpr std::string_view characters = "0123456789000.eE+-.infINFatyNx(_) ";
  std::mt19937_64 random(6);
  bool same = true;
  for (int i = 0; i < 200'000; ++i) {
    std::string text;
    for (std::size_t n = random() % 14; text.size() < n;) text += characters[random() % characters.size()];
    same = is_the_same<double>(text) && is_the_same<float>(text) && same;
  }
  CHECK(same);
}

TEST_CASE("what is read is the same with every standard library") {
  const auto read = [](std::string_view text) {
    double value = -7;
    const auto done = detail::read_number(text.data(), text.data() + text.size(), value);
    return done.ec == std::errc{} && done.ptr == text.data() + text.size() ? value : -7;
  };
  CHECK(read("0.1") == 0.1);
  CHECK(bits(read("-0")) == bits(-0.));
  CHECK(read("4.9e-324") == std::numeric_limits<double>::denorm_min());
  CHECK(read("1.7976931348623157e308") == DBL_MAX);
  CHECK(std::isinf(read("inf")));
  CHECK(std::isnan(read("nan")));
  CHECK(read("1e309") == -7);
  CHECK(read("1e-400") == -7);
  int whole = 0;
  const std::string_view number = "123x";
  CHECK(detail::read_number(number.data(), number.data() + number.size(), whole).ptr == number.data() + 3);
  CHECK(whole == 123);
}

}  // namespace
