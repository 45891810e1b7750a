#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/concatenate.hpp>
#include <strata/data/views/filter.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/one_hot.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/take.hpp>
#include <string>
#include <vector>

#include "data_values.hpp"
#include "error_of.hpp"
using namespace strata;
using namespace strata::core;
using test::error_of;
using test::values;

namespace {
using numbers = std::vector<std::int64_t>;

auto stream(std::int64_t from, std::int64_t to) {
  return data::from_generator([=] { return [to, i = from]() mutable { return i < to ? std::optional(i++) : std::nullopt; }; });
}
auto labelled(std::vector<float> x, std::vector<int> y) {
  return data::from_tensor_slices(data::array<float, shape{1}>(std::move(x)), y);
}
}  // namespace

TEST_CASE("one view after the other, whatever they are") {
  const numbers expected{0, 1, 7, 8, 9};
  const auto a = data::range(2), b = data::range(7, 10);
  CHECK(values(a | data::concatenate(b)) == expected);
  CHECK(values(data::concatenate(a, b)) == expected);
  CHECK(values(data::concatenate(a, b)) == values(data::concatenate(a, b | data::take(9))));
  CHECK(values(stream(0, 2) | data::concatenate(b)) == expected);
  CHECK(values(a | data::concatenate(stream(7, 10))) == expected);
  CHECK(values(stream(0, 2) | data::concatenate(stream(7, 10))) == expected);
  CHECK(values(stream(0, 0) | data::concatenate(stream(7, 7))).empty());
  CHECK(values(stream(0, 0) | data::concatenate(b)) == numbers{7, 8, 9});
}

TEST_CASE("sizes and random access are kept") {
  const auto both = data::range(2) | data::concatenate(data::range(7, 10)) | data::concatenate(data::range(100, 101));
  CHECK(both.size() == 6);
  CHECK(values(both) == numbers{0, 1, 7, 8, 9, 100});
  CHECK((both.begin()[5]).row == 5);
  CHECK((data::range(2) | data::shuffle(2) | data::concatenate(data::range(3))).size() == 5);
}

TEST_CASE("samples: each view is read in its own epoch order, and batches do not care where it ends") {
  const auto a = labelled({1, 2, 3}, {1, 2, 3}), b = labelled({4, 5, 6, 7}, {4, 5, 6, 7});
  for (int copies = 0; copies < 2; ++copies) {
    auto joined = a | data::shuffle(3) | data::concatenate(b | data::shuffle(4));
    auto batches = (copies == 0 ? joined : decltype(joined)(joined)) | data::batch<2>;
    for (int epoch = 0; epoch < 4; ++epoch) {
      std::vector<int> seen;
      for (const samples<float>& s : batches)
        for (int k = 0; k < s.count; ++k) {
          CHECK(s.x()[k] == float(s.labels()[k]));
          seen.push_back(s.labels()[k]);
        }
      REQUIRE(seen.size() == 7);
      std::sort(seen.begin(), seen.begin() + 3), std::sort(seen.begin() + 3, seen.end());
      CHECK(seen == std::vector{1, 2, 3, 4, 5, 6, 7});
    }
  }
}

TEST_CASE("numbers of different types become those of the batch") {
  const auto bytes = data::from_tensor_slices(data::array<std::uint8_t, shape{1}>(std::vector<std::uint8_t>{250, 251}));
  const auto floats = data::from_tensor_slices(data::array<float, shape{1}>({.5f, 1.5f}));
  auto batches = bytes | data::concatenate(floats) | data::batch<4>;
  const samples<float> b = *batches.begin();
  CHECK(std::vector(b.x(), b.x() + 4) == std::vector{250.f, 251.f, .5f, 1.5f});
}

TEST_CASE("elements of any type") {
  const auto a = data::from_range(std::vector<std::string>{"a", "b"}), b = data::from_range(std::vector<std::string>{"c"});
  CHECK(values(a | data::concatenate(b)) == std::vector<std::string>{"a", "b", "c"});
  CHECK(values(a | data::filter([](const std::string& s) { return s != "a"; }) | data::concatenate(b)) ==
        std::vector<std::string>{"b", "c"});
}

TEST_CASE("streams get their elements back, also when an epoch is left early") {
  auto whole = data::concatenate(stream(0, 200), stream(0, 200)) | data::shuffle(5) | data::batch<4>;
  for (int epoch = 0; epoch < 3; ++epoch)
    for (const auto& b : whole) CHECK(b.count > 0);
  CHECK(whole.base().rows().a().pool().acquire() < 20);
  CHECK(whole.base().rows().b().pool().acquire() < 20);
  auto left = data::concatenate(stream(0, 200), stream(0, 200)) | data::shuffle(5) | data::batch<4>;
  for (int epoch = 0; epoch < 100; ++epoch) {
    auto at = left.begin();
    for (int k = 0; k < epoch % 90; ++k) ++at;
  }
  CHECK(left.base().rows().a().pool().acquire() < 20);
  CHECK(left.base().rows().b().pool().acquire() < 20);
}

TEST_CASE("errors say of which view a sample is") {
  const auto refuse = data::map([](std::int64_t x) {
    if (x == 8) throw std::runtime_error("no eight");
    return x;
  });
  CHECK(error_of([&] { values(data::range(3) | data::concatenate(data::range(7, 10)) | refuse); }) ==
        "map: sample 1 of the second view: no eight");
  CHECK(error_of([&] { values(stream(8, 9) | data::concatenate(data::range(7, 10)) | refuse); }) ==
        "map: sample 0 of the first view: no eight");
  CHECK_THROWS_WITH_AS(labelled({1}, {1}) | data::concatenate(labelled({2, 3}, {0, 5})) | data::one_hot<5>,
                       "one_hot<5>: label 5 of sample 2 is not in 0 ... 4", strata_error);
}
