// Pipelines with threads that are abandoned, copied, moved and destroyed at any moment: under ThreadSanitizer this tests for
// races.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/ignore_errors.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/prefetch.hpp>
#include <strata/data/views/shuffle.hpp>
#include <string>
#include <thread>
#include <vector>

#include "repetitions.hpp"
using namespace strata;
using strata::test::repetitions;

namespace {
constexpr int count = 120;

/// Which samples fail, and how long samples take; shared by all copies of a pipeline.
struct plan {
  std::atomic<int> fails_at{-1}, damaged_from{count}, slow{0};
};
struct own_failure {
  int sample;
};

auto make(const std::shared_ptr<plan>& p, int threads) {
  std::vector<int> numbers(count);
  for (int i = 0; i < count; ++i) numbers[static_cast<std::size_t>(i)] = i;
  const auto decode = [p](int i) {
    if (i % 8 == 0)
      for (int k = p->slow; k > 0; --k) std::this_thread::yield();
    if (p->fails_at == i) throw own_failure{i};
    if (i >= p->damaged_from && i % 3 == 0) throw strata_error("damaged");
    return std::pair(std::array{static_cast<float>(i), 1.f}, i);
  };
  const auto many = threads == 0 ? data::parallel(data::autotune) : data::parallel(threads);
  return data::from_range(std::move(numbers)) | data::map(decode, many) | data::ignore_errors |
         data::shuffle(count, {.seed = 1, .reshuffle_each_iteration = false}) | data::batch<8>;
}
auto make_stream(const std::shared_ptr<plan>& p, int threads) {
  const auto numbers = [p] {
    return [i = 0, p]() mutable -> std::optional<int> {
      if (i == count) return std::nullopt;
      if (p->fails_at == i) throw own_failure{i};
      return i++;
    };
  };
  const auto decode = [](int i) { return std::pair(std::array{static_cast<float>(i), 1.f}, i); };
  return data::from_generator(numbers) | data::shuffle(16) | data::map(decode, data::parallel(threads == 0 ? 2 : threads)) |
         data::batch<8>;
}

/// Reads at most so many batches; false if the pass failed.
bool read(auto& view, int most) {
  try {
    int n = 0;
    for (auto at = view.begin(); at != view.end() && n < most; ++at, ++n)
      for (int k = 0; k < (*at).count; ++k)
        if ((*at).x()[2 * k] != static_cast<float>((*at).labels()[k])) throw strata_error("a sample is not whole");
    return true;
  } catch (const own_failure&) {
    return false;
  }
}
/// All labels of a pass that is not interrupted.
std::vector<int> whole(auto& view) {
  std::vector<int> labels;
  for (const auto& b : view) labels.insert(labels.end(), b.labels(), b.labels() + b.count);
  return labels;
}

void stop_often(auto make_view, int rounds, unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const auto undisturbed = std::make_shared<plan>();
  auto reference = make_view(undisturbed, 1);
  const std::vector<int> expected = whole(reference);
  CHECK(expected.size() == count);
  for (int round = 0; round < rounds; ++round) {
    const auto p = std::make_shared<plan>();
    p->slow = below(4) == 0 ? below(20) : 0;
    const auto disturb = [&] {
      p->fails_at = below(3) == 0 ? below(count) : -1;
      p->damaged_from = below(3) == 0 ? below(count) : count;
    };
    auto batches = make_view(p, below(6));
    if (below(2) == 0) {
      disturb();
      read(batches, below(16));
      auto copy = batches;
      if (below(2) == 0) read(copy, below(4));
      batches = std::move(copy);
    }
    auto view = batches | data::prefetch(static_cast<std::size_t>(1 + below(6)));
    for (int pass = below(4); pass > 0; --pass) {
      disturb();
      read(view, below(20));
      if (below(4) == 0) {
        auto moved = std::move(view);
        read(moved, below(4));
        view = std::move(moved);
      }
    }
    if (below(3) == 0) {  // whatever has happened: the next epoch is whole
      p->fails_at = -1;
      p->damaged_from = count;
      view.set_epoch(0);
      CHECK(whole(view) == expected);
    }
  }
}
}  // namespace

TEST_CASE("many early stops of samples with known numbers") {
  stop_often([](const auto& p, int threads) { return make(p, threads); }, repetitions(800, 200), 1);
}

TEST_CASE("many early stops of a stream") {
  stop_often([](const auto& p, int threads) { return make_stream(p, threads); }, repetitions(400, 100), 2);
}
