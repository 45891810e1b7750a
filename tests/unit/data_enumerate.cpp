#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/enumerate.hpp>
#include <strata/data/views/filter.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/shuffle.hpp>
#include <string>
#include <utility>
#include <vector>

#include "data_values.hpp"
#include "error_of.hpp"
using namespace strata;
using namespace strata::core;
using test::error_of;
using test::values;

namespace {
const std::vector<std::string> names{"a", "b", "c"};
using counted = std::vector<std::pair<std::int64_t, std::string>>;
}  // namespace

TEST_CASE("elements with their numbers") {
  CHECK(values(data::from_range(names) | data::enumerate()) == counted{{0, "a"}, {1, "b"}, {2, "c"}});
  CHECK(values(data::from_range(names) | data::enumerate(-1)) == counted{{-1, "a"}, {0, "b"}, {1, "c"}});
  CHECK(values(data::enumerate(data::from_range(names), 5)) == counted{{5, "a"}, {6, "b"}, {7, "c"}});
  CHECK(values(data::from_range(names) | data::filter([](const std::string& s) { return s != "b"; }) | data::enumerate()) ==
        counted{{0, "a"}, {1, "c"}});
  const auto not_one = [](std::int64_t i, const std::string&) { return i != 1; };
  CHECK(values(data::from_range(names) | data::enumerate() | data::filter(not_one) | data::enumerate(7) |
               data::map([](std::int64_t now, std::int64_t before, const std::string& name) {
                 return name + std::to_string(before) + std::to_string(now);
               })) == std::vector<std::string>{"a07", "c28"});
}

TEST_CASE("after shuffle, numbers are places, from 0 on in each epoch; before it, they go with the elements") {
  for (const bool copied : {false, true}) {
    auto places = data::range(20) | data::shuffle(20) | data::enumerate();
    test::epochs_of epochs((copied ? decltype(places)(places) : std::move(places)) | data::elements);
    const auto first = epochs.next(), second = epochs.next();
    CHECK(first != second);
    for (const auto& epoch : {first, second})
      for (std::size_t i = 0; i < 20; ++i) CHECK(epoch[i].first == std::int64_t(i));
  }
  for (const auto& [i, x] : values(data::range(20) | data::enumerate() | data::shuffle(20))) CHECK(i == x);
}

TEST_CASE("f(index, x, y) and f(index, element)") {
  const auto slices = data::from_tensor_slices(data::array<float, shape{2}>({1, 2, 3, 4}), std::vector{8, 9});
  auto mapped = slices | data::enumerate() | data::map([](std::int64_t i, auto x, int y) { return std::pair(x(1), y + int(i)); });
  CHECK(values(mapped) == std::vector<std::pair<float, int>>{{2, 8}, {4, 10}});
  const auto sum = [](std::int64_t i, const auto& e) { return e.x(0) + float(e.y) + float(i); };
  CHECK(values(slices | data::enumerate() | data::map(sum)) == std::vector<float>{9, 13});
  auto batches = mapped | data::batch<2>;
  const samples<float> b = *batches.begin();
  CHECK(b.x()[1] == 4);
  CHECK(b.labels()[1] == 10);
}

TEST_CASE("errors name the element, not its number") {
  auto failing = data::range(9) | data::shuffle(9, {.seed = 3}) | data::enumerate() | data::map([](std::int64_t, std::int64_t x) {
                   if (x == 4) throw std::runtime_error("no four");
                   return x;
                 });
  CHECK(error_of([&] { values(failing); }) == "map: sample 4: no four");
}
