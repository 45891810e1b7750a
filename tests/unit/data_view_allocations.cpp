// Stages that read ahead, store pairs of elements or make streams do not allocate in the steady state.
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <strata/cpu/engine/team.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/cache.hpp>
#include <strata/data/views/check_finite.hpp>
#include <strata/data/views/concatenate.hpp>
#include <strata/data/views/enumerate.hpp>
#include <strata/data/views/flat_map.hpp>
#include <strata/data/views/interleave.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/named.hpp>
#include <strata/data/views/prefetch.hpp>
#include <strata/data/views/repeat.hpp>
#include <strata/data/views/scale.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/skip.hpp>
#include <strata/data/views/take.hpp>
#include <strata/data/views/unbatch.hpp>
#include <strata/data/views/window.hpp>
#include <strata/data/views/zip.hpp>
#include <vector>

#include "count_allocations.hpp"
#ifndef STRATA_TEST_NEW_IS_TAKEN
using namespace strata;
using namespace strata::core;

namespace {
/// Allocations of the epochs after the first three.
long in_steady_state(auto&& view) {
  long before = 0, batches = 0;
  for (int epoch = 0; epoch < 8; ++epoch) {
    if (epoch == 3) before = test::allocations;
    for (const auto& b : view) batches += b.count > 0;
  }
  REQUIRE(batches >= 8 * 4);
  return test::allocations - before;
}
}  // namespace

TEST_CASE("views allocate nothing once they are warm") {
  const auto a = data::range(50), b = data::range(100, 150);
  const auto some = [](std::int64_t i) { return data::range(i, i + 5); };
  CHECK(in_steady_state(data::zip(a, b) | data::batch<8>) == 0);
  CHECK(in_steady_state(data::zip(a | data::shuffle(20), b) | data::shuffle(10) | data::batch<8>) == 0);
  CHECK(in_steady_state(a | data::concatenate(b | data::shuffle(20)) | data::batch<8>) == 0);
  const auto sum = [](std::int64_t i, std::int64_t x) { return i + x; };
  CHECK(in_steady_state(a | data::shuffle(20) | data::enumerate() | data::map(sum) | data::batch<8>) == 0);
  CHECK(in_steady_state(a | data::window<4>({.shift = 1}) | data::batch<8>) == 0);
  CHECK(in_steady_state(a | data::flat_map(some) | data::shuffle(20) | data::batch<8>) == 0);
  CHECK(in_steady_state(a | data::interleave(some, {.cycle_length = 3}) | data::batch<8>) == 0);
  CHECK(in_steady_state(a | data::interleave(some, {.cycle_length = 3}, data::parallel(2)) | data::batch<8>) == 0);
  CHECK(in_steady_state(a | data::batch<8> | data::unbatch | data::shuffle(20) | data::batch<4>) == 0);
  const auto change = [](auto& m) { m.x(0)(0) = 1; };
  CHECK(in_steady_state(a | data::batch<8> | data::skip(1) | data::take(5) | data::repeat(2) | data::map(change)) == 0);
}

namespace {
struct image : input<4> {};
struct kind {};
}  // namespace

TEST_CASE("views of samples with names allocate nothing once they are warm") {
  const auto set = data::from_tensor_slices(of<image>(std::vector<std::array<double, 4>>(50)), of<kind>(std::vector<int>(50)));
  const auto same = [](const auto& s) { return data::columns(of<kind>(get<kind>(s)), of<image>(get<image>(s))); };
  const auto some = [](const auto&) {
    return data::range(5) | data::map([](std::int64_t i) { return data::columns(of<kind>(i)); });
  };
  CHECK(in_steady_state(set | data::shuffle(20) | data::batch<8>) == 0);
  CHECK(in_steady_state(set | data::map(same) | data::cache | data::shuffle(20) | data::batch<8> | data::prefetch()) == 0);
  CHECK(in_steady_state(set | data::shuffle(20) | data::batch<8> | data::unbatch | data::batch<4>) == 0);
  CHECK(in_steady_state(set | data::flat_map(some) | data::shuffle(20) | data::batch<8> | data::repeat(2)) == 0);
  const auto names = data::from_tensor_slices(std::vector<float>(50)) |
                     data::map_to<shape{4}>([](auto x, auto to) { to(0) = x(0); }) | data::named<image>;
  const auto kinds = data::range(50) | data::named<kind> | data::shuffle(20);
  CHECK(in_steady_state(data::zip(names, kinds) | data::check_finite | data::batch<8>) == 0);
}

TEST_CASE("batches that the threads of a training write allocate nothing once they are warm") {
  const data::array<float, shape{1'024}> rows(std::vector<float>(50 * 1'024));
  auto batches = data::from_tensor_slices(rows) | data::shuffle(20) | data::scale(2) | data::batch<8>;
  thread_team team(2);
  long shared = 0;
  batches.written_by([&](std::size_t count, const auto& write) {
    ++shared;
    team.for_tasks(2, [&](int i, int) { write(count * std::size_t(i) / 2, count * std::size_t(i + 1) / 2); });
  });
  CHECK(in_steady_state(batches) == 0);
  CHECK(shared == 8 * 7);
}
#endif
