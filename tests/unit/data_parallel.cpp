#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <strata/data/core/gather_team.hpp>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/check_finite.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/one_hot.hpp>
#include <strata/data/views/prefetch.hpp>
#include <strata/data/views/scale.hpp>
#include <strata/data/views/shuffle.hpp>
#include <string>
#include <thread>
#include <vector>

#include "error_of.hpp"
#include "repetitions.hpp"
using namespace strata;
using namespace strata::test;

namespace {
/// Sample i is (i, 2 i, 3 i), its label i.
auto counted(int n) {
  std::vector<float> x;
  std::vector<int> y;
  for (int i = 0; i < n; ++i) {
    for (int k = 1; k <= 3; ++k) x.push_back(static_cast<float>(k * i));
    y.push_back(i);
  }
  return data::from_tensor_slices(data::array<float, shape{3}>(std::move(x)), y);
}

struct everything {
  std::vector<float> x, targets;
  std::vector<std::int32_t> labels;
  std::vector<int> counts;

  friend bool operator==(const everything&, const everything&) = default;
};
everything pass(auto& view) {
  constexpr std::size_t x_size{std::remove_cvref_t<decltype(view)>::sample_shape.size()};
  constexpr std::size_t y_size{std::remove_cvref_t<decltype(view)>::target_shape.size()};
  everything all;
  for (const auto& b : view) {
    const auto n = static_cast<std::size_t>(b.count);
    all.counts.push_back(b.count);
    all.x.insert(all.x.end(), b.x(), b.x() + n * x_size);
    if (b.labels() != nullptr) all.labels.insert(all.labels.end(), b.labels(), b.labels() + n);
    if (b.targets() != nullptr) all.targets.insert(all.targets.end(), b.targets(), b.targets() + n * y_size);
  }
  return all;
}

/// Waits, for some samples longer than for others.
void dawdle(int i) {
  if (i % 11 == 0) std::this_thread::sleep_for(std::chrono::microseconds(i % 7 * 30));
  if (i % 5 == 0) std::this_thread::yield();
}
const auto uneven = [](auto x, int y) {
  dawdle(y);
  return data::sample{std::array{x(0) + 1, x(1) * x(2)}, y + 1000};
};
}  // namespace

TEST_CASE("order and values do not depend on the number of threads") {
  const auto check = [](auto make) {
    auto alone = make(data::parallel(1));
    const everything epochs[] = {pass(alone), pass(alone), pass(alone)};
    CHECK(!epochs[0].x.empty());
    for (const data::parallel p : {data::parallel(2), data::parallel(3), data::parallel(16), data::parallel(data::autotune)}) {
      auto together = make(p);
      for (const everything& epoch : epochs) CHECK(pass(together) == epoch);
      auto ahead = make(p) | data::prefetch(data::autotune);
      for (const everything& epoch : epochs) CHECK(pass(ahead) == epoch);
    }
  };
  check([](data::parallel p) { return counted(333) | data::map(uneven, p) | data::batch<32>; });
  check([](data::parallel p) { return counted(333) | data::map(uneven, p) | data::shuffle(50) | data::batch<1>; });
  check([](data::parallel p) {
    return counted(333) | data::shuffle(400, {.seed = 3}) | data::map(uneven, p) | data::one_hot<2000> | data::scale(0.5) |
           data::batch<100, data::drop_remainder>;
  });
  check([](data::parallel p) {
    return counted(100) |
           data::map_to<shape{2, 2}>([](auto x, auto out) { out(0, 0) = out(1, 1) = x(1), out(0, 1) = out(1, 0) = 7; }, p) |
           data::batch<64>;
  });
  check([](data::parallel p) {  // a stream
    const auto numbers = [] { return [i = 0]() mutable { return i < 150 ? std::optional(i++) : std::nullopt; }; };
    return data::from_generator(numbers) | data::shuffle(20) |
           data::map([](int i) { return dawdle(i), std::pair(std::array{static_cast<float>(i), 2.f}, i); }, p) | data::batch<16>;
  });
}

TEST_CASE("so many threads write as the most demanding stage asks for, and no more") {
  const auto threads_of = [](auto make) {
    struct {
      std::mutex mutex;
      std::set<std::thread::id> seen;
    } shared;
    auto view = make([&shared](auto x, int) {
      std::this_thread::sleep_for(std::chrono::microseconds(300));
      const std::lock_guard lock(shared.mutex);
      shared.seen.insert(std::this_thread::get_id());
      return x(0);
    });
    for (const auto& b : view) CHECK(b.count > 0);
    return shared.seen;
  };
  const auto one = threads_of([](auto f) { return counted(64) | data::map(f) | data::batch<16>; });
  CHECK(one == std::set{std::this_thread::get_id()});
  const auto three = threads_of([](auto f) {
    return counted(256) | data::map(f, data::parallel(2)) | data::map([](float x) { return x; }, data::parallel(3)) |
           data::batch<64>;
  });
  CHECK(three.size() == 3);
  CHECK(three.contains(std::this_thread::get_id()));
}

TEST_CASE("the first failure in the order of the samples counts, whichever thread meets another one earlier") {
  for (const int threads : {1, 2, 4, 9})
    for (const int first : {3, 40, 63}) {
      const auto fails = [first](auto x, int y) {
        if (y == first) {
          std::this_thread::sleep_for(std::chrono::milliseconds(3));  // the others have failed by now
          throw strata_error("the first");
        }
        if (y > first) throw strata_error("a later one");
        return x(0);
      };
      auto view = counted(128) | data::map(fails, data::parallel(threads)) | data::batch<64>;
      const std::string expected = "map: sample " + std::to_string(first) + ": the first";
      CHECK(error_of([&] { pass(view); }) == expected);
      auto ahead = view | data::prefetch(2);
      CHECK(error_of([&] { pass(ahead); }) == expected);
    }
}

TEST_CASE("exceptions arrive as they are, and the next epoch is whole") {
  struct own {
    int number;
  };
  static std::atomic<bool> fails;
  const auto sometimes = [](auto x, int y) {
    if (fails && y == 70) throw own{y};
    return x(0);
  };
  for (const int threads : {1, 3}) {
    fails = false;
    auto good = counted(100) | data::shuffle(100) | data::map(sometimes, data::parallel(threads)) | data::batch<8>;
    auto direct = good;
    auto ahead = good | data::prefetch(data::autotune);
    const auto meets_failure = [](auto& view, const everything& expected) {
      fails = true;
      std::size_t seen = 0;
      int number = 0;
      auto at = view.begin();
      try {
        for (; at != view.end(); ++at) {
          CHECK(std::equal((*at).x(), (*at).x() + (*at).count, expected.x.begin() + static_cast<std::ptrdiff_t>(seen)));
          seen += static_cast<std::size_t>((*at).count);
        }
      } catch (const own& failure) {
        number = failure.number;
      }
      CHECK(number == 70);
      CHECK(at == view.end());
      fails = false;
    };
    const auto first = pass(good), second = pass(good);
    meets_failure(direct, first);
    CHECK(pass(direct) == second);
    meets_failure(ahead, first);
    CHECK(pass(ahead) == second);
  }
}

TEST_CASE("views with threads are copied and moved while idle") {
  auto make = [] { return counted(200) | data::map(uneven, data::parallel(4)) | data::shuffle(200) | data::batch<16>; };
  auto expected = make();
  const everything first = pass(expected), second = pass(expected);
  auto view = make();
  CHECK(pass(view) == first);
  auto copy = view;
  auto at = copy.begin();  // in the midst of an epoch
  ++at;
  auto moved = std::move(copy);
  moved.set_epoch(0);
  CHECK(pass(moved) == first);
  CHECK(pass(view) == second);
  view = moved;
  CHECK(pass(view) == second);
  moved = make();
  CHECK(pass(moved) == first);
  std::vector<decltype(make())> many(5, make());
  many.push_back(make());
  for (auto& one : many) CHECK(pass(one) == first);
}

TEST_CASE("parallel(0) is refused") {
  CHECK_THROWS_WITH_AS(data::parallel(0), "parallel: 0 threads, it must be at least 1", strata_error);
  CHECK_THROWS_WITH_AS(data::parallel(-3), "parallel: -3 threads, it must be at least 1", strata_error);
}

TEST_CASE("a team of data may end at any moment after its last batch") {
  std::atomic<std::size_t> parts = 0;
  std::size_t expected = 0;
  for (int i = 0; i < repetitions(4'000, 300); ++i) {
    data::detail::gather_team team;
    for (int batch = 0; batch < 1 + i % 3; ++batch)
      team.for_parts(5, 8, [&](std::size_t begin, std::size_t end) { parts += end - begin; });
    expected += 5 * static_cast<std::size_t>(1 + i % 3);
  }
  CHECK(parts == expected);
}

TEST_CASE("a team does each part once, whatever its size is and was") {
  data::detail::gather_team team;
  std::vector<int> done(1000);
  for (int round = 0; round < 400; ++round) {
    const std::size_t count = static_cast<std::size_t>(round * 37 % 200);
    const int threads = 1 + round / 7 * 5 % 8;
    std::fill(done.begin(), done.end(), 0);
    team.for_parts(count, threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) {
        if (k % 50 == 49) std::this_thread::yield();
        ++done[k];
      }
    });
    CHECK(std::count(done.begin(), done.end(), 1) == static_cast<std::ptrdiff_t>(count));
    CHECK(std::count(done.begin(), done.end(), 0) == static_cast<std::ptrdiff_t>(1000 - count));
  }
}
