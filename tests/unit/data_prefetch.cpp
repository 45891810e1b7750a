#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <ranges>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/one_hot.hpp>
#include <strata/data/views/prefetch.hpp>
#include <strata/data/views/shard.hpp>
#include <strata/data/views/shuffle.hpp>
#include <thread>
#include <vector>

#include "error_of.hpp"
using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
auto counted(int n) {
  std::vector<float> x;
  std::vector<int> y;
  for (int i = 0; i < n; ++i) x.push_back(static_cast<float>(i)), y.push_back(i);
  return data::from_tensor_slices(data::array<float, shape{1}>(std::move(x)), y);
}
auto shuffled(int n) { return counted(n) | data::shuffle(std::size_t(n), {.seed = 4}) | data::batch<8>; }

using view = decltype(shuffled(1) | data::prefetch());
static_assert(batch_source<view> && std::ranges::view<view> && std::ranges::input_range<view> &&
              !std::ranges::forward_range<view>);
static_assert(std::ranges::sized_range<view> && std::copyable<view>);
static_assert(view::batch_size == 8 && view::labels == label_kind::sparse && view::sample_shape == shape{1});
static_assert(std::same_as<view, decltype(shuffled(1) | data::prefetch)>);

std::vector<std::int32_t> pass(auto&& batches) {
  std::vector<std::int32_t> y;
  for (const auto& b : batches)
    for (int k = 0; k < b.count; ++k) {
      CHECK(b.x()[k] == float(b.labels()[k]));
      y.push_back(b.labels()[k]);
    }
  return y;
}

/// A source as a user might write it: it does not fill buffers of others, and batch `bad` of epoch 1 fails.
struct own_source : std::ranges::view_base {
  using value_type = samples<double>;
  static constexpr int batch_size = 2;
  static constexpr shape sample_shape{2}, target_shape{1};
  static constexpr label_kind labels = label_kind::dense;

  struct iterator {
    using difference_type = std::ptrdiff_t;
    using value_type = samples<double>;
    own_source* from = nullptr;
    samples<double> operator*() const { return {from->x, from->y, from->batch == 4 ? 1 : 2}; }
    iterator& operator++() {
      from->go(from->batch + 1);
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return from->batch == 5; }
  };
  iterator begin() {
    ++epoch;
    go(0);
    return {this};
  }
  std::default_sentinel_t end() const { return {}; }

  void go(int n) {
    batch = n;
    if (epoch == 1 && batch == bad) throw strata_error("own_source: batch " + std::to_string(bad) + " is missing");
    for (int k = 0; k < 4; ++k) x[k] = 100 * epoch + 10 * batch + k;
    for (int k = 0; k < 2; ++k) y[k] = -x[2 * k];
  }

  int epoch = -1, batch = 0, bad = -1;
  double x[4]{}, y[2]{};
};
static_assert(batch_source<own_source>);
}  // namespace

TEST_CASE("a view that makes batches ahead still tells how many workers share the samples") {
  CHECK(data::detail::shards_of(counted(8) | data::shard(2, 0) | data::batch<2> | data::prefetch()) == 2);
  CHECK(data::detail::shards_of(shuffled(8) | data::prefetch()) == 1);
}

TEST_CASE("prefetch yields the batches of the view before it, epoch after epoch") {
  for (const std::size_t ahead : {1u, 2u, 5u, 50u}) {
    auto direct = shuffled(100);
    auto view = shuffled(100) | data::prefetch(ahead);
    CHECK(view.size() == 13);
    for (int epoch = 0; epoch < 5; ++epoch) CHECK(pass(view) == pass(direct));
    view.set_epoch(2);
    direct.set_epoch(2);
    for (int epoch = 0; epoch < 2; ++epoch) CHECK(pass(view) == pass(direct));
    view.resume_at({.epoch = 7, .samples = 40});
    direct.resume_at({.epoch = 7, .samples = 40});
    for (int epoch = 0; epoch < 2; ++epoch) CHECK(pass(view) == pass(direct));
  }
}

TEST_CASE("an epoch that was set before prefetch is kept") {
  auto direct = shuffled(40);
  direct.set_epoch(6);
  auto view = direct | data::prefetch();
  CHECK(pass(view) == pass(direct));
}

TEST_CASE("a batch stays as it is until the next ++, whatever the thread does meanwhile") {
  auto view = shuffled(400) | data::prefetch(1);
  for (auto i = view.begin(); i != view.end(); ++i) {
    const samples<float> b = *i;
    const std::vector<float> before(b.x(), b.x() + b.count);
    if (b.labels()[0] % 8 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(std::vector<float>(b.x(), b.x() + b.count) == before);
  }
}

TEST_CASE("epochs that are left early leave no sample in the next") {
  auto direct = shuffled(100);
  auto view = shuffled(100) | data::prefetch(3);
  for (int epoch = 0; epoch < 50; ++epoch) {
    auto i = view.begin();
    for (int k = 0; k < epoch % 13; ++k) ++i;
    direct.begin();
  }
  CHECK(pass(view) == pass(direct));
}

TEST_CASE("a view that moves while its thread works takes the thread along") {
  auto direct = shuffled(100);
  auto first = shuffled(100) | data::prefetch();
  CHECK(pass(first) == pass(direct));
  first.begin();
  direct.begin();
  auto second = std::move(first);
  CHECK(pass(second) == pass(direct));
}

TEST_CASE("a copy is read by a thread of its own, at the same time, from the epoch on that comes next") {
  auto direct = shuffled(100);
  auto view = shuffled(100) | data::prefetch(3);
  const auto unread = view;
  CHECK(pass(view) == pass(direct));
  auto i = view.begin();
  const std::vector<std::int32_t> epoch_1 = pass(direct), epoch_2 = pass(direct);
  auto copy = view;
  CHECK(pass(copy) == epoch_2);
  std::size_t k = 0;
  for (; i != view.end(); ++i, k += 8) CHECK((*i).labels()[0] == epoch_1[k]);
  CHECK(k >= 100);
  copy = unread;
  direct.set_epoch(0);
  CHECK(pass(copy) == pass(direct));
  copy = view;  // after its last batch
  CHECK(pass(copy) == epoch_2);
  CHECK(pass(view) == epoch_2);
}

TEST_CASE("batches of any source are copied, with all that belongs to them") {
  auto view = own_source{} | data::prefetch();
  static_assert(!std::ranges::sized_range<decltype(view)>);
  for (int epoch = 0; epoch < 3; ++epoch) {
    int batch = 0;
    for (const samples<double>& b : view) {
      CHECK(b.count == (batch == 4 ? 1 : 2));
      CHECK(b.labels() == nullptr);
      for (int k = 0; k < 2 * b.count; ++k) CHECK(b.x()[k] == 100 * epoch + 10 * batch + k);
      for (int k = 0; k < b.count; ++k) CHECK(b.targets()[k] == -b.x()[2 * k]);
      ++batch;
    }
    CHECK(batch == 5);
  }
}

TEST_CASE("an exception of the source arrives after the batches before it, and the next epoch works") {
  for (const int bad : {0, 1, 3}) {
    own_source source;
    source.bad = bad;
    auto view = source | data::prefetch();
    for (const auto& b : view) CHECK(b.count > 0);
    int batches = 0;
    const auto epoch_1 = [&] {
      for (const auto& b : view) batches += b.count > 0;
    };
    CHECK(error_of([&] { (void)epoch_1(); }) == "own_source: batch " + std::to_string(bad) + " is missing");
    CHECK(batches == bad);
    batches = 0;
    for (const auto& b : view) CHECK(b.x()[0] == 200 + 10 * batches++);
    CHECK(batches == 5);
  }
}

TEST_CASE("a failure that was not waited for is gone with its epoch") {
  own_source source;
  source.bad = 2;
  source.epoch = 0;
  auto view = source | data::prefetch(4);
  view.begin();                                                // epoch 1: the failure is in the ring, two batches ahead
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // long enough, else the test is only weaker
  for (int epoch = 2; epoch < 6; ++epoch) {
    int batches = 0;
    for (const auto& b : view) CHECK(b.x()[0] == 100 * epoch + 10 * batches++);
    CHECK(batches == 5);
  }
}

TEST_CASE("destruction while the thread is at work, waiting, failed or never started") {
  for (int i = 0; i < 200; ++i) {
    auto view = shuffled(100) | data::prefetch(std::size_t(1 + i % 3));
    if (i % 4 == 0) continue;
    auto it = view.begin();
    if (i % 4 == 2) ++it;
    if (i % 40 == 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  own_source source;
  source.bad = 0;
  source.epoch = 0;
  auto failed = source | data::prefetch();
  CHECK_THROWS_AS(failed.begin(), strata_error);
}

TEST_CASE("prefetch(0) is refused") {
  CHECK_THROWS_WITH_AS(shuffled(10) | data::prefetch(0), "prefetch: buffer_size is 0, it must be at least 1", strata_error);
}
