// Assertions: when they hold, and their messages.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <strata/base/tensor.hpp>
#include <strata/debugging/assertions.hpp>
#include <strata/train/predictions.hpp>
#include <string>
#include <vector>

#include "error_of.hpp"
using namespace strata;
using strata::test::error_of;

namespace {
const std::vector<float> six{1, 2, 3, 4, 5, 6};
const std::vector<std::array<float, 3>> table{{1, 2, 3}, {4, 5, 6}};
const std::vector<std::array<double, 3>> holed{{1, 2, 3}, {4, 5, std::nan("")}};
constexpr double infinity = std::numeric_limits<double>::infinity();
}  // namespace

TEST_CASE("equal numbers of any kind; otherwise the first that differs, its place, and how many differ") {
  debugging::assert_equal(six, six);
  debugging::assert_equal(six, std::vector<int>{1, 2, 3, 4, 5, 6});
  debugging::assert_equal(3, 3.0);
  debugging::assert_equal(std::span<const float>(six).first(1), 1);
  debugging::assert_equal(std::vector<float>(), 7);
  CHECK(error_of([] { debugging::assert_equal(six, 1); }) ==
        "assert_equal: element 1: 2 is not 1; this fails for 5 of 6 elements");
  CHECK(error_of([] { debugging::assert_equal(1, six, "after loading"); }) ==
        "after loading: assert_equal: element 1: 1 is not 2; this fails for 5 of 6 elements");
  CHECK(error_of([] { debugging::assert_equal(table, holed); }) ==
        "assert_equal: element 5 (1, 2): 6 is not nan; this fails for 1 of 6 elements");
  CHECK(error_of([] { debugging::assert_equal(table, six); }) == "assert_equal: shapes (2, 3) and (6) differ");
  CHECK(error_of([] { debugging::assert_equal(0.1f, 0.1); }) == "assert_equal: 0.1 is not 0.1");
  const std::int64_t large = std::numeric_limits<std::int64_t>::max();
  CHECK(error_of([&] { debugging::assert_equal(large - 1, large); }) ==
        "assert_equal: 9223372036854775806 is not 9223372036854775807");
  CHECK(error_of([] { debugging::assert_equal(true, false); }) == "assert_equal: true is not false");
}

TEST_CASE("near is relative to the second number, and absolute") {
  debugging::assert_near(six, std::vector<double>{1, 2, 3, 4, 5, 6.000001});
  debugging::assert_near(100, 101, {.rtol = 0.01, .atol = 0});
  debugging::assert_near(infinity, infinity);
  CHECK(error_of([] { debugging::assert_near(101, 99, {.rtol = 0.01, .atol = 0}, "loss"); }) ==
        "loss: assert_near: 101 is further than 0.99 from 99");
  CHECK(error_of([] { debugging::assert_near(table, 5, {.rtol = 0, .atol = 2}); }) ==
        "assert_near: element 0 (0, 0): 1 is further than 2 from 5; this fails for 2 of 6 elements");
  for (const double other : {1.0, -infinity, double(std::nan(""))})
    CHECK(error_of([&] { debugging::assert_near(infinity, other, {.rtol = 1, .atol = 1}); }) != "no error");
  CHECK(error_of([] { debugging::assert_near(std::nan(""), std::nan(""), "message"); }).starts_with("message: assert_near: nan"));
}

TEST_CASE("order and sign; nothing holds of a nan, except that it differs") {
  debugging::assert_less(six, 7), debugging::assert_less_equal(six, 6), debugging::assert_greater(six, 0);
  debugging::assert_greater_equal(six, 1), debugging::assert_positive(six), debugging::assert_non_negative(0);
  debugging::assert_negative(-1), debugging::assert_non_positive(0), debugging::assert_none_equal(six, 7);
  debugging::assert_none_equal(std::nan(""), std::nan(""));
  CHECK(error_of([] { debugging::assert_less(six, 5); }) ==
        "assert_less: element 4: 5 is not less than 5; this fails for 2 of 6 elements");
  CHECK(error_of([] { debugging::assert_less_equal(2, 1); }) == "assert_less_equal: 2 is not at most 1");
  CHECK(error_of([] { debugging::assert_greater(1, 1); }) == "assert_greater: 1 is not greater than 1");
  CHECK(error_of([] { debugging::assert_greater_equal(1, 2); }) == "assert_greater_equal: 1 is not at least 2");
  CHECK(error_of([] { debugging::assert_none_equal(six, 2); }).starts_with("assert_none_equal: element 1: 2 is equal to 2"));
  CHECK(error_of([] { debugging::assert_positive(0); }) == "assert_positive: 0 is not positive");
  CHECK(error_of([] { debugging::assert_negative(0); }) == "assert_negative: 0 is not negative");
  CHECK(error_of([] { debugging::assert_non_positive(1e-9); }) == "assert_non_positive: 1e-09 is positive");
  CHECK(error_of([] { debugging::assert_non_negative(std::vector{0, -1}); }) ==
        "assert_non_negative: element 1: -1 is negative; this fails for 1 of 2 elements");
  for (const auto& assertion : {debugging::assert_less, debugging::assert_less_equal, debugging::assert_greater,
                                debugging::assert_greater_equal, debugging::assert_equal})
    CHECK(error_of([&] { assertion(std::nan(""), 1, ""); }) != "no error");
  for (const auto& assertion : {debugging::assert_positive, debugging::assert_non_negative, debugging::assert_negative,
                                debugging::assert_non_positive, debugging::assert_all_finite})
    CHECK(error_of([&] { assertion(std::nan(""), ""); }) != "no error");
}

TEST_CASE("finite numbers, rank and shapes") {
  debugging::assert_all_finite(table);
  CHECK(error_of([] { debugging::assert_all_finite(holed, "gradient"); }) ==
        "gradient: assert_all_finite: element 5 (1, 2): nan is not finite; this fails for 1 of 6 elements");
  CHECK(error_of([] { debugging::assert_all_finite(-infinity); }) == "assert_all_finite: -inf is not finite");
  debugging::assert_rank(table, 2), debugging::assert_rank(1.5, 0);
  CHECK(error_of([] { debugging::assert_rank(six, 2); }) == "assert_rank: shape (6) has rank 1, not 2");
  debugging::assert_shapes({{table, {"N", 3}}, {std::vector{1, 2}, {"N"}}});
  debugging::assert_shapes({{debugging::numbers(six, {1, 2, 3}), {1, "rows", "columns"}}, {table, {"rows", "columns"}}, {2, {}}});
  CHECK(error_of([] { debugging::assert_shapes({{table, {"N", 3}}, {six, {"N"}}}, "data"); }) ==
        "data: assert_shapes: array 1 has shape (6), but N was 2 before");
  CHECK(error_of([] { debugging::assert_shapes({{table, {2, 4}}}); }) ==
        "assert_shapes: array 0 has shape (2, 3), but extent 1 should be 4");
  CHECK(error_of([] { debugging::assert_shapes({{six, {2, 3}}}); }) ==
        "assert_shapes: array 0 has shape (6), but should have rank 2");
  CHECK(error_of([] { debugging::numbers(six, {2, 2}); }) == "numbers: 6 numbers do not have shape (2, 2)");
}

TEST_CASE("tensors and predictions bring their shapes") {
  std::array<float, 6> memory{1, 2, 3, 4, 5, 6};
  debugging::assert_equal(tensor<float, shape{2, 3}>{memory.data()}, table);
  debugging::assert_shapes({{predictions<float, shape{3}>{six}, {2, 3}}});
  CHECK(error_of([] { debugging::assert_less(predictions<float, shape{3}>{six}, 4); }) ==
        "assert_less: element 3 (1, 0): 4 is not less than 4; this fails for 3 of 6 elements");
}
