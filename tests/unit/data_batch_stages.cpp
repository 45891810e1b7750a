// take, skip, repeat, map, cache and apply after batch.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <strata/base/standard_ranges.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/core/sample_view.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/apply.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/cache.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/one_hot.hpp>
#include <strata/data/views/prefetch.hpp>
#include <strata/data/views/repeat.hpp>
#include <strata/data/views/sample_weight.hpp>
#include <strata/data/views/shard.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/skip.hpp>
#include <strata/data/views/take.hpp>
#include <strata/data/views/unbatch.hpp>
#include <utility>
#include <vector>

#include "error_of.hpp"
using namespace strata;
using namespace strata::core;
using test::error_of;

namespace {
/// Sample i is (i, i), its label i.
auto counted(int n) {
  std::vector<float> x;
  std::vector<int> y;
  for (int i = 0; i < n; ++i) x.push_back(float(i)), x.push_back(float(i)), y.push_back(i);
  return data::from_tensor_slices(data::array<float, shape{2}>(std::move(x)), y);
}
/// The labels of the next epoch, batch by batch.
std::vector<std::vector<int>> labels(auto& view) {
  std::vector<std::vector<int>> all;
  for (const auto& b : view) all.emplace_back(b.labels(), b.labels() + b.count);
  return all;
}
/// The labels of the first n batches of the next epoch.
std::vector<std::vector<int>> labels(auto& view, std::size_t n) {
  std::vector<std::vector<int>> all;
  auto at = view.begin();
  for (std::size_t k = 0; k < n; ++k) {
    if (k > 0) ++at;
    all.emplace_back((*at).labels(), (*at).labels() + (*at).count);
  }
  return all;
}
using batches = std::vector<std::vector<int>>;

/// Batches that have neither size nor position, and do not fill buffers of others.
template <class B>
struct plain : B {
  explicit plain(B base) : B(std::move(base)) {}
  void size() const = delete;
  void where() const = delete;
  void fill() = delete;
};
/// Three batches of two samples: a source without bases or members of strata, so that no name is found by ADL.
struct three_equal_batches : std::ranges::view_base {
  static constexpr shape sample_shape{1}, target_shape{};
  static constexpr label_kind labels = label_kind::none;
  static constexpr int batch_size = 2;
  using value_type = samples<float>;
  struct iterator {
    using value_type = samples<float>;
    using difference_type = std::ptrdiff_t;
    const float* x;
    int left;

    value_type operator*() const { return {x, 2}; }
    iterator& operator++() {
      --left;
      return *this;
    }
    void operator++(int) { --left; }
    bool operator==(std::default_sentinel_t) const { return left == 0; }
  };
  float x[2] = {1, 2};

  iterator begin() const { return {x, 3}; }
  std::default_sentinel_t end() const { return {}; }
};
}  // namespace

TEST_CASE("stages describe the batches of any source") {
  const auto order = [](auto view) { return data::detail::order_of(view); };
  CHECK(order(three_equal_batches{} | data::take(2)) == "batch(2) | take(2)");
  CHECK(order(three_equal_batches{} | data::repeat(2)) == "batch(2) | repeat(2)");
  CHECK(order(three_equal_batches{} | data::unbatch) == "batch(2) | unbatch");
}

TEST_CASE("take, skip and repeat of batches") {
  const auto check = [](auto view, const batches& expected) {
    CHECK(labels(view) == expected);
    CHECK(labels(view) == expected);
    if constexpr (requires { view.size(); }) CHECK(view.size() == expected.size());
  };
  auto b = counted(10) | data::batch<4>;
  auto p = plain(b);
  const batches all{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}};
  check(b | data::take(2), {all[0], all[1]});
  check(p | data::take(2), {all[0], all[1]});
  check(b | data::take(3), all);
  check(b | data::take(99), all);
  check(p | data::take(99), all);
  check(b | data::take(0), {});
  check(b | data::skip(1), {all[1], all[2]});
  check(p | data::skip(1), {all[1], all[2]});
  check(b | data::skip(0), all);
  check(b | data::skip(3), {});
  check(b | data::skip(99), {});
  check(p | data::skip(99), {});
  check(b | data::repeat(2), {all[0], all[1], all[2], all[0], all[1], all[2]});
  check(p | data::repeat(2), {all[0], all[1], all[2], all[0], all[1], all[2]});
  check(b | data::skip(1) | data::repeat(2) | data::take(3), {all[1], all[2], all[1]});
  check(b | data::repeat(3) | data::skip(7), {all[1], all[2]});
  check(b | data::prefetch() | data::skip(1) | data::prefetch(), {all[1], all[2]});
  check(b | data::prefetch() | data::repeat(2) | data::take(4), {all[0], all[1], all[2], all[0]});
  CHECK_THROWS_WITH_AS(b | data::repeat(0), "repeat: count is 0, it must be at least 1", strata_error);
}

TEST_CASE("epochs are those of the batches; repeat has several in one") {
  auto shuffled = counted(20) | data::shuffle(20) | data::batch<8>;
  std::vector<batches> epochs;
  for (int epoch = 0; epoch < 6; ++epoch) epochs.push_back(labels(shuffled));
  auto taken = counted(20) | data::shuffle(20) | data::batch<8> | data::take(2) | data::prefetch();
  for (const batches& all : epochs) CHECK(labels(taken) == batches(all.begin(), all.begin() + 2));
  taken.set_epoch(3);
  CHECK(labels(taken)[1] == epochs[3][1]);
  auto repeated = counted(20) | data::shuffle(20) | data::batch<8> | data::repeat(2);
  for (std::size_t epoch = 0; epoch < 3; ++epoch) {
    batches both = epochs[2 * epoch];
    both.insert(both.end(), epochs[2 * epoch + 1].begin(), epochs[2 * epoch + 1].end());
    CHECK(labels(repeated) == both);
  }
  repeated.set_epoch(1);
  CHECK(labels(repeated)[0] == epochs[2][0]);
}

TEST_CASE("where and resume_at: the rest of an epoch and the next one are the same") {
  const auto check = [](const auto& make) {
    auto reference = make();
    std::vector<batches> epochs;
    for (int epoch = 0; epoch < 4; ++epoch) epochs.push_back(labels(reference));
    for (std::size_t epoch = 0; epoch < 3; ++epoch)
      for (std::size_t n = 0; n <= epochs[epoch].size(); ++n) {
        auto left = make();
        left.set_epoch(static_cast<int>(epoch));
        if (n > 0) labels(left, n);
        auto resumed = make();
        resumed.resume_at(left.where());
        CHECK(resumed.where() == left.where());
        REQUIRE(labels(resumed) == batches(epochs[epoch].begin() + std::ptrdiff_t(n), epochs[epoch].end()));
        REQUIRE(labels(resumed) == epochs[epoch + 1]);
      }
  };
  auto b = counted(22) | data::shuffle(22) | data::batch<4>;
  auto d = counted(22) | data::shuffle(22) | data::batch<4, data::drop_remainder>;
  check([&] { return b | data::take(4); });
  check([&] { return b | data::skip(2); });
  check([&] { return d | data::repeat(3); });
  check([&] { return b | data::repeat(2); });
  check([&] { return b | data::skip(2) | data::take(3); });
  check([&] { return b | data::take(5) | data::skip(1) | data::repeat(2); });
  check([&] { return b | data::skip(1) | data::map([](auto& m) { m.label(0) = int(m.number()) + 100 * m.epoch(); }); });
  check([&] { return b | data::prefetch() | data::take(4) | data::prefetch(); });
  check([&] { return b | data::cache; });
  check([&] { return d | data::repeat(2) | data::cache() | data::prefetch(); });
  check([&] { return b | data::prefetch() | data::cache | data::skip(1) | data::repeat(2); });
}

TEST_CASE("cache after batch keeps the batches of the first epoch") {
  int made = 0;
  auto direct = counted(22) | data::sample_weight([](auto, int label) { return label; }) | data::shuffle(22) | data::batch<4> |
                data::map([&made](auto& b) { ++made, b.x(0)(1) = -1; });
  auto kept = direct | data::cache();
  static_assert(batch_source<decltype(kept)> && std::copyable<decltype(kept)>);
  CHECK(kept.size() == 6);
  auto unread = kept;
  const batches first = labels(direct);
  made = 0;
  labels(kept, 2);  // stopped early: existing batches are not made again
  labels(kept, 4);
  CHECK(made == 4);
  for (int epoch = 0; epoch < 3; ++epoch) CHECK(labels(kept) == first);
  auto copy = kept;
  CHECK(labels(copy) == first);
  CHECK(labels(unread) == first);  // a copy that was made before
  CHECK(made == 6);
  const auto ahead = direct | data::cache() | data::prefetch(2);
  for (int fit = 0; fit < 2; ++fit) {  // a trainer reads a copy in each fit
    auto read = ahead;
    CHECK(labels(read) == first);
  }
  CHECK(made == 12);
  for (const samples<float>& b : copy) {
    CHECK(b.x()[1] == -1);
    for (int k = 0; k < b.count; ++k) CHECK(b.truths[0].weights[k] == float(b.labels()[k]));
  }
  auto changed = kept | data::map([](auto& b) { b.label(0) = -5; });
  CHECK(labels(changed)[1][0] == -5);
  CHECK(labels(kept) == first);
  kept.set_epoch(5);
  CHECK(labels(kept) == first);
  auto plainly = plain(counted(22) | data::shuffle(22) | data::batch<4>) | data::cache;
  CHECK(labels(plainly) == first);
  CHECK(labels(plainly) == first);

  auto sharded = counted(24) | data::shard(2, 1) | data::batch<4> | data::cache;
  labels(sharded, 2);
  CHECK(sharded.where() == data_position{0, 16});
  CHECK(data::detail::shards_of(sharded) == 2);
  static_assert(!data::detail::has_only_rows<decltype(sharded)>);
}

TEST_CASE("cache after batch: a batch that fails is made again, and positions within a batch are refused") {
  bool fails = true;
  auto kept = counted(10) | data::batch<4> | data::map([&fails](auto& b) {
                if (b.number() == 1 && std::exchange(fails, false)) throw std::runtime_error("once");
              }) |
              data::cache;
  CHECK(error_of([&] { labels(kept); }) == "map: batch 1: once");
  const batches all{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}};
  for (int epoch = 0; epoch < 2; ++epoch) CHECK(labels(kept) == all);
  kept.resume_at({2, 6});
  CHECK(error_of([&] { labels(kept); }) ==
        "cache: an epoch cannot continue after 6 samples, within a kept batch, which ends after 8: resume with the same size of "
        "batches");
}

TEST_CASE("map changes batches in place") {
  auto negative = counted(6) | data::batch<4> | data::map([](auto& b) {
                    for (int k = 0; k < b.count(); ++k) b.x(k)(1) = -b.x(k)(1);
                    for (std::int32_t& label : b.labels()) label += int(10 * b.number()) + 100 * b.epoch();
                  });
  static_assert(batch_source<decltype(negative)>);
  CHECK(labels(negative) == batches{{0, 1, 2, 3}, {14, 15}});
  CHECK(labels(negative) == batches{{100, 101, 102, 103}, {114, 115}});
  negative.set_epoch(7);
  CHECK(labels(negative)[1] == std::vector{714, 715});
  for (const samples<float>& b : negative)
    for (int k = 0; k < b.count; ++k) CHECK(b.x()[2 * k] == -b.x()[2 * k + 1]);

  // By value, with dense targets, after prefetch, whose buffers it must not touch.
  auto mixed = counted(6) | data::one_hot<6> | data::batch<3, double> | data::prefetch() | data::map([](auto b) {
                 for (int c = 0; c < 6; ++c) b.target(0)(c) = (b.target(0)(c) + b.target(b.count() - 1)(c)) / 2;
                 b.targets().back() = 9;
                 b.x().front() = 9;
               });
  for (int epoch = 0; epoch < 3; ++epoch) {
    int n = 0;
    for (const samples<double>& b : mixed) {
      CHECK(b.targets()[3 * n] == .5);
      CHECK(b.targets()[17] == 9);
      CHECK(b.x()[0] == 9);
      CHECK(b.x()[2] == 3 * n + 1);
      ++n;
    }
    CHECK(n == 2);
  }
}

TEST_CASE("errors of a map of batches name the batch") {
  auto failing = counted(9) | data::batch<2> | data::skip(1) | data::map([](auto& b) {
                   if (b.label(0) == 6) throw std::runtime_error("no six");
                 });
  CHECK(error_of([&] { labels(failing); }) == "map: batch 2: no six");
  CHECK_THROWS_WITH_AS(counted(9) | data::batch<2> | data::map([](auto&) {}, data::parallel(2)),
                       "map: one thread changes a batch: put a parallel map before batch", strata_error);
}

TEST_CASE("apply is a call") {
  const auto first_of = [](std::size_t n) { return data::apply([n](auto view) { return view | data::take(n); }); };
  auto samples_first = counted(10) | first_of(5) | data::batch<4>;
  CHECK(labels(samples_first) == batches{{0, 1, 2, 3}, {4}});
  auto batches_first = counted(10) | data::batch<4> | first_of(1);
  CHECK(labels(batches_first) == batches{{0, 1, 2, 3}});
  CHECK((counted(10) | data::apply([](const auto& view) { return view.size(); })) == 10);
  auto composed = first_of(8) | data::batch<4> | first_of(1) | data::prefetch();
  auto moved = counted(10) | composed;
  CHECK(labels(moved) == batches{{0, 1, 2, 3}});
}
