// take and skip of random-access views have random access: stages that need random access may follow them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/concatenate.hpp>
#include <strata/data/views/enumerate.hpp>
#include <strata/data/views/filter.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/skip.hpp>
#include <strata/data/views/take.hpp>
#include <strata/data/views/window.hpp>
#include <strata/data/views/zip.hpp>
#include <utility>
#include <vector>

#include "data_values.hpp"
using namespace strata;
using test::values;
using ints = std::vector<std::int64_t>;

TEST_CASE("every part of a view, by iteration and by place, against a plain loop") {
  for (int n = 1; n < 6; ++n)
    for (std::size_t first = 0; first < 7; ++first)
      for (std::size_t count = 0; count < 7; ++count) {
        ints expected;
        for (int i = 0; i < n; ++i)
          if (std::size_t(i) >= first && std::size_t(i) < first + count) expected.push_back(i);
        const auto part = data::range(n) | data::skip(first) | data::take(count);
        CHECK(part.size() == expected.size());
        CHECK(values(part) == expected);
        for (std::size_t place = 0; place < expected.size(); ++place)
          CHECK(std::ranges::begin(part)[std::ptrdiff_t(place)].row == std::uint32_t(expected[place]));
        // Compares with the same part of a view without random access.
        const auto streamed = data::range(n) | data::filter([](std::int64_t) { return true; });
        CHECK(values(streamed | data::skip(first) | data::take(count)) == expected);
      }
}

TEST_CASE("stages that look samples up by place follow take and skip") {
  const auto middle = data::range(10) | data::skip(2) | data::take(5);  // 2 3 4 5 6
  const auto twice = middle | data::map([](std::int64_t i) { return 2 * i; });
  CHECK(values(twice | data::skip(3)) == ints{10, 12});
  CHECK(values(data::zip(middle | data::skip(1), twice)) ==
        std::vector<std::pair<std::int64_t, std::int64_t>>{{3, 4}, {4, 6}, {5, 8}, {6, 10}});
  CHECK(values(middle | data::take(1) | data::concatenate(twice | data::take(1))) == ints{2, 4});
  CHECK(values(middle | data::enumerate(100) | data::skip(4)) == std::vector<std::pair<std::int64_t, std::int64_t>>{{104, 6}});
  std::vector<ints> windows;
  for (const auto& w : values(middle | data::window<2>({.shift = 1}) | data::skip(2)))
    windows.emplace_back(w.values.begin(), w.values.end());
  CHECK(windows == std::vector<ints>{{4, 5}, {5, 6}});
}

TEST_CASE("orders tell which parts the stages after them read") {
  const auto from = [](std::size_t first) { return data::range(10) | data::skip(first) | data::take(4); };
  const auto differ = [](const auto& a, const auto& b) { return data::detail::order_of(a) != data::detail::order_of(b); };
  CHECK(differ(data::zip(from(1), from(2)), data::zip(from(1), from(3))));
  CHECK(differ(from(1) | data::concatenate(from(2)), from(1) | data::concatenate(from(3))));
  CHECK(differ(from(1) | data::enumerate(), from(2) | data::enumerate()));
  CHECK(differ(from(1) | data::window<2>(), from(2) | data::window<2>()));
  CHECK(differ(from(1) | data::window<2>({.stride = 1}), from(1) | data::window<2>({.stride = 2})));
  CHECK(data::detail::order_of(data::zip(from(1), from(2))) ==
        "zip(range(10 samples, from 0 in steps of 1) | skip(1) | take(4), "
        "range(10 samples, from 0 in steps of 1) | skip(2) | take(4))");
}

TEST_CASE("epochs pass through: a shuffle after take has the same samples in another order") {
  auto shuffled = test::epochs_of(data::range(100) | data::take(20) | data::shuffle(20) | data::elements);
  const ints first = shuffled.next(), second = shuffled.next();
  CHECK(first != second);
  auto sorted = second;
  std::ranges::sort(sorted);
  CHECK(sorted == values(data::range(20)));
}
