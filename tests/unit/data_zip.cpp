#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <ranges>
#include <stdexcept>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/elements.hpp>
#include <strata/data/views/filter.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/one_hot.hpp>
#include <strata/data/views/scale.hpp>
#include <strata/data/views/shard.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/take.hpp>
#include <strata/data/views/zip.hpp>
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
using numbers = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// A stream of 0 ... n - 1.
auto stream(int n) {
  return data::from_generator(
      [n] { return [n, i = std::int64_t{0}]() mutable { return i < n ? std::optional(i++) : std::nullopt; }; });
}
}  // namespace

TEST_CASE("zip is lockstep until one view ends, whatever the views are") {
  const numbers expected{{0, 5}, {1, 6}, {2, 7}};
  CHECK(values(data::zip(data::range(3), data::range(5, 9))) == expected);
  CHECK(values(data::zip(data::range(9), data::range(5, 8))) == expected);
  CHECK(values(data::zip(stream(3), data::range(5, 9))) == expected);
  CHECK(values(data::zip(data::range(9), data::range(5, 15) | data::take(3))) == expected);
  CHECK(values(data::zip(stream(9), stream(8) | data::filter([](auto x) { return x >= 5; }))) == expected);
  CHECK(values(data::zip(stream(0), stream(8))).empty());
  CHECK(data::zip(data::range(9), data::range(5) | data::shuffle(2)).size() == 5);
}

TEST_CASE("the longer view is not read past the end of the shorter first one") {
  int read = 0;
  const auto counting = data::from_generator([&read] { return [&read] { return std::optional(read++); }; });
  CHECK(values(data::zip(data::range(4), counting)).size() == 4);
  CHECK(read == 4);
}

TEST_CASE("x and labels of two views are samples, also after shuffle and in copies") {
  const auto x = data::from_tensor_slices(data::array<std::uint8_t, shape{2}>(std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6}));
  const auto check = [](auto view) {
    using batches = decltype(view | data::batch<3>);
    static_assert(batches::sample_shape == shape{2} && batches::labels == label_kind::sparse);
    auto copy = view;
    for (auto* v : {&view, &copy}) {
      auto b = *v | data::batch<3>;
      for (int epoch = 0; epoch < 3; ++epoch)
        for (const samples<float>& s : b)
          for (int k = 0; k < 3; ++k) {
            CHECK(s.x()[2 * k] + 1 == s.x()[2 * k + 1]);
            CHECK(s.labels()[k] == int(s.x()[2 * k]) / 2 + 10);
          }
    }
  };
  check(data::zip(x, data::range(10, 13)));
  check(data::zip(x, data::range(10, 13)) | data::shuffle(3));
  check(data::zip(x, stream(99) | data::filter([](auto y) { return y >= 10; })));
  check(data::zip(x, stream(99) | data::filter([](auto y) { return y >= 10; })) | data::shuffle(2));
  check(data::zip(x, data::range(10) | data::map([](auto i) { return short(i + 10); })));
  check(data::zip(x | data::shuffle(3, {.seed = 4}), data::range(10, 13) | data::shuffle(3, {.seed = 4})));
}

TEST_CASE("dense targets go to their place in the type of the batch") {
  const auto x = data::from_tensor_slices(data::array<std::uint8_t, shape{1}>(std::vector<std::uint8_t>{1, 2, 3}));
  const auto y = data::from_tensor_slices(data::array<float, shape{2}>({.5f, 1.5f, 2.5f, 3.5f, 4.5f, 5.5f}));
  auto batches = data::zip(x | data::scale(2), y) | data::batch<3>;
  static_assert(decltype(batches)::labels == label_kind::dense && decltype(batches)::target_shape == shape{2});
  const samples<float> b = *batches.begin();
  CHECK(b.x()[2] == 6);
  CHECK(b.targets()[5] == 5.5f);
  const auto kept = values(data::zip(x, y));
  CHECK(kept[1].first(0) == 2);
  CHECK(kept[1].second(1) == 3.5f);
}

TEST_CASE("whatever is no sample is a pair for map") {
  const std::vector<std::string> names{"a", "bc", "def"};
  CHECK(values(data::zip(data::from_range(names), data::range(3))) ==
        std::vector<std::pair<std::string, std::int64_t>>{{"a", 0}, {"bc", 1}, {"def", 2}});
  auto sum = data::zip(data::zip(data::range(3), data::range(10, 13)), data::from_range(names)) |
             data::map([](std::int64_t x, std::int64_t y, const std::string& name) { return x + y + std::int64_t(name.size()); });
  CHECK(values(sum) == std::vector<std::int64_t>{11, 14, 17});
  auto parts = data::zip(data::range(3), data::from_range(names)) |
               data::map([](std::int64_t x, const std::string& name) { return std::pair(float(x), int(name.size())); });
  CHECK(values(parts)[2] == std::pair(2.f, 3));
}

TEST_CASE("streams get their elements back, also when an epoch is left early") {
  auto whole = data::zip(stream(200), stream(200)) | data::shuffle(5) | data::batch<4>;
  for (int epoch = 0; epoch < 3; ++epoch)
    for (const auto& b : whole) CHECK(b.count > 0);
  CHECK(whole.base().rows().a().pool().acquire() < 20);
  CHECK(whole.base().rows().b().pool().acquire() < 20);
  auto left = data::zip(stream(200), stream(200)) | data::shuffle(5) | data::batch<4>;
  for (int epoch = 0; epoch < 100; ++epoch) {
    auto at = left.begin();
    for (int k = 0; k < epoch % 30; ++k) ++at;
  }
  CHECK(left.base().rows().a().pool().acquire() < 20);
  CHECK(left.base().rows().b().pool().acquire() < 20);
}

TEST_CASE("errors name the element of the first view, labels that do not fit are refused") {
  auto failing = data::zip(data::range(5, 9), stream(9)) | data::map([](auto x, auto) {
                   if (x == 7) throw std::runtime_error("no seven");
                   return x;
                 });
  CHECK(error_of([&] { values(failing); }) == "map: sample 2: no seven");
  auto large = data::zip(data::range(3), data::range(4'000'000'000, 4'000'000'003)) | data::batch<2>;
  CHECK_THROWS_WITH_AS(large.begin(), "label 4000000000 does not fit into 32 bits", strata_error);
}

TEST_CASE("views that are shared unequally are refused") {
  CHECK_THROWS_WITH_AS(data::zip(data::range(4) | data::shard(2, 0), data::range(4)),
                       "zip: one view is shared among 2 workers, the other among 1: put shard after zip", strata_error);
  CHECK(values(data::zip(data::range(4) | data::shard(2, 1), data::range(4) | data::shard(2, 0))) == numbers{{1, 0}, {3, 2}});
}

TEST_CASE("orders of zipped views are told apart") {
  const auto a = data::range(4), b = data::range(5);
  CHECK(data::detail::order_of(data::zip(a | data::shuffle(3), b)) !=
        data::detail::order_of(data::zip(a | data::shuffle(3), b | data::take(4))));
}
