// Random pipelines against plain loops over vectors.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <strata/data/core/stream.hpp>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/concatenate.hpp>
#include <strata/data/views/elements.hpp>
#include <strata/data/views/enumerate.hpp>
#include <strata/data/views/filter.hpp>
#include <strata/data/views/flat_map.hpp>
#include <strata/data/views/interleave.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/prefetch.hpp>
#include <strata/data/views/repeat.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/skip.hpp>
#include <strata/data/views/take.hpp>
#include <strata/data/views/unbatch.hpp>
#include <strata/data/views/window.hpp>
#include <strata/data/views/zip.hpp>
#include <utility>
#include <vector>

#include "data_values.hpp"
using namespace strata;

namespace {
using numbers = std::vector<std::int64_t>;

/// A type-erased view of integers.
class any_source {
 public:
  using element = std::int64_t;

  template <class V>
  explicit any_source(V view) : view_(std::make_unique<of<V>>(std::move(view))) {}
  any_source(any_source&&) = default;
  any_source& operator=(any_source&&) = default;
  any_source(const any_source& other) : view_(other.view_->copy()) {}
  any_source& operator=(const any_source& other) { return *this = any_source(other); }

  void start(int epoch) { view_->start(epoch); }
  bool next(std::int64_t& e) { return view_->next(e); }

 private:
  struct interface {
    virtual ~interface() = default;
    virtual std::unique_ptr<interface> copy() const = 0;
    virtual void start(int epoch) = 0;
    virtual bool next(std::int64_t& e) = 0;
  };
  template <class V>
  struct of : interface {
    explicit of(V v) : view(std::move(v)) {}
    std::unique_ptr<interface> copy() const override { return std::make_unique<of>(view); }
    void start(int epoch) override { reader.start(view, epoch); }
    bool next(std::int64_t& e) override {
      return reader.next(view, [&e](std::int64_t shown) { e = shown; });
    }
    V view;
    data::detail::element_reader<V> reader;
  };
  std::unique_ptr<interface> view_;
};
using any_view = data::stream_view<any_source>;

struct pipeline {
  any_view view;
  std::function<numbers(int epoch)> model;
};
template <class V>
pipeline made(V view, std::function<numbers(int)> model) {
  return {any_view(any_source(std::move(view))), std::move(model)};
}

numbers range_of(std::int64_t n) {
  numbers all;
  for (std::int64_t i = 0; i < n; ++i) all.push_back(i);
  return all;
}
/// The result of `shuffle` by itself, outside a pipeline.
numbers shuffled(const numbers& from, std::size_t buffer_size, std::uint64_t seed, int epoch) {
  if (from.empty()) return {};
  auto order = data::range(static_cast<std::int64_t>(from.size())) | data::shuffle(buffer_size, {.seed = seed});
  order.set_epoch(epoch);
  numbers all;
  for (const data::sample_index i : order) all.push_back(from[i.row]);
  return all;
}
numbers in_turns(const std::vector<numbers>& ranges, std::size_t cycle_length, int block_length) {
  struct place {
    const numbers* range = nullptr;
    std::size_t next = 0;
  };
  std::vector<place> places(cycle_length);
  numbers order;
  std::size_t coming = 0, open = 0;
  for (std::size_t at = 0; coming < ranges.size() || open > 0; at = (at + 1) % cycle_length) {
    place& here = places[at];
    if (here.range == nullptr) {
      if (coming == ranges.size()) continue;
      here = {&ranges[coming++], 0};
      ++open;
    }
    int taken = 0;
    for (; taken < block_length && here.next < here.range->size(); ++taken) order.push_back((*here.range)[here.next++]);
    if (taken < block_length) here.range = nullptr, --open;
  }
  return order;
}

/// Elements of the range that flat_map and interleave make of x.
numbers range_from(std::int64_t x) {
  numbers all;
  for (std::int64_t k = 0; k < (x & 3); ++k) all.push_back((x + 7 * k) % 1000);
  return all;
}
auto view_from(std::int64_t x) {
  return data::from_generator([x] { return range_from(x); }) | data::shuffle(2, {.seed = 5});
}
numbers model_of_view_from(std::int64_t x, int epoch) { return shuffled(range_from(x), 2, 5, epoch); }

class generator {
 public:
  explicit generator(unsigned seed) : random_(seed) {}

  pipeline random_pipeline(int stages) {
    if (stages == 0) return source();
    const int before = below(stages);
    switch (below(16)) {
      case 0: {
        auto [view, model] = random_pipeline(stages - 1);
        const std::size_t n = size_below(30);
        return made(view | data::take(n), [=, model = model](int e) {
          numbers all = model(e);
          all.resize(std::min(all.size(), n));
          return all;
        });
      }
      case 1: {
        auto [view, model] = random_pipeline(stages - 1);
        const std::size_t n = size_below(8);
        return made(view | data::skip(n), [=, model = model](int e) {
          numbers all = model(e);
          all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), n)));
          return all;
        });
      }
      case 2:
      case 3: {
        auto [a, model_a] = random_pipeline(before);
        auto [b, model_b] = random_pipeline(stages - 1 - before);
        return made(a | data::concatenate(b), [model_a = model_a, model_b = model_b](int e) {
          numbers all = model_a(e);
          for (const auto x : model_b(e)) all.push_back(x);
          return all;
        });
      }
      case 4:
      case 5: {
        auto [a, model_a] = random_pipeline(before);
        auto [b, model_b] = random_pipeline(stages - 1 - before);
        const auto f = [](std::int64_t x, std::int64_t y) { return (31 * x + y) % 1000; };
        return made(data::zip(a, b) | data::shuffle(3, {.seed = 1}) | data::map(f),
                    [f, model_a = model_a, model_b = model_b](int e) {
                      const numbers x = model_a(e), y = model_b(e);
                      numbers all;
                      for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) all.push_back(f(x[i], y[i]));
                      return shuffled(all, 3, 1, e);
                    });
      }
      case 6: {
        auto [view, model] = random_pipeline(stages - 1);
        return made(view | data::flat_map(range_from), [model = model](int e) {
          std::vector<numbers> ranges;
          for (const auto x : model(e)) ranges.push_back(range_from(x));
          return in_turns(ranges, 1, 1);
        });
      }
      case 7:
      case 8: {
        auto [view, model] = random_pipeline(stages - 1);
        const data::interleave_options options{.cycle_length = 1 + below(4), .block_length = 1 + below(3)};
        const auto expected = [=, model = model](int e) {
          std::vector<numbers> ranges;
          for (const auto x : model(e)) ranges.push_back(model_of_view_from(x, e));
          return in_turns(ranges, static_cast<std::size_t>(options.cycle_length), options.block_length);
        };
        return below(4) == 0 ? made(view | data::interleave(view_from, options, data::parallel(2)), expected)
                             : made(view | data::interleave(view_from, options), expected);
      }
      case 9: {
        auto [view, model] = random_pipeline(stages - 1);
        const int n = 1 + below(3);
        return made(view | data::repeat(n), [=, model = model](int e) {
          numbers all;
          for (int pass = 0; pass < n; ++pass)
            for (const auto x : model(e * n + pass)) all.push_back(x);
          return all;
        });
      }
      case 10: {
        auto [view, model] = random_pipeline(stages - 1);
        const auto likes = [](std::int64_t x) { return x % 3 != 0; };
        return made(view | data::filter(likes), [=, model = model](int e) {
          numbers all = model(e);
          all.erase(std::remove_if(all.begin(), all.end(), [&](auto x) { return !likes(x); }), all.end());
          return all;
        });
      }
      case 11: {
        auto [view, model] = random_pipeline(stages - 1);
        const auto sum = [](std::int64_t i, std::int64_t x) { return (i * 10 + x) % 1000; };
        return made(view | data::enumerate(3) | data::map(sum), [=, model = model](int e) {
          numbers all = model(e);
          for (std::size_t i = 0; i < all.size(); ++i) all[i] = sum(std::int64_t(i) + 3, all[i]);
          return all;
        });
      }
      case 12:
      case 13: {
        auto [view, model] = random_pipeline(stages - 1);
        const std::size_t window = 1 + size_below(12);
        const auto seed = static_cast<std::uint64_t>(below(100));
        return made(view | data::shuffle(window, {.seed = seed}),
                    [=, model = model](int e) { return shuffled(model(e), window, seed, e); });
      }
      case 14: {  // batches and back; batch wants one sample at least
        auto [view, model] = random_pipeline(stages - 1);
        const auto one = data::range(500, 502);
        return made(view | data::concatenate(one) | data::batch<2, double> | data::skip(1) | data::take(9) | data::unbatch |
                        data::map([](auto x) { return std::int64_t(x(0)); }),
                    [model = model](int e) {
                      numbers all = model(e);
                      all.push_back(500), all.push_back(501);
                      all.erase(all.begin(), all.begin() + 2);
                      all.resize(std::min<std::size_t>(all.size(), 18));
                      return all;
                    });
      }
      default: {
        auto [view, model] = random_pipeline(stages - 1);
        auto copy = view;  // reads for itself
        return made(data::zip(view, copy) | data::map([](std::int64_t x, std::int64_t y) { return (x + y) % 1000; }),
                    [model = model](int e) {
                      numbers all = model(e);
                      for (auto& x : all) x = 2 * x % 1000;
                      return all;
                    });
      }
    }
  }

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

 private:
  std::size_t size_below(int n) { return static_cast<std::size_t>(below(n)); }

  /// Random access, of several kinds, and a stream.
  pipeline source() {
    const std::int64_t n = 1 + below(20), m = 1 + below(20);
    switch (below(6)) {
      case 0:
        return made(data::range(n), [=](int) { return range_of(n); });
      case 1:
        return made(data::range(n) | data::concatenate(data::range(m)), [=](int) {
          numbers all = range_of(n);
          for (const auto x : range_of(m)) all.push_back(x);
          return all;
        });
      case 2:
        return made(
            data::zip(data::range(n), data::range(m)) | data::map([](std::int64_t x, std::int64_t y) { return 2 * x + y; }),
            [=](int) {
              numbers all = range_of(std::min(n, m));
              for (auto& x : all) x *= 3;
              return all;
            });
      case 3:
        return made(data::range(n) | data::enumerate(1) | data::map([](std::int64_t i, std::int64_t x) { return 2 * i - x; }),
                    [=](int) {
                      numbers all = range_of(n);
                      for (auto& x : all) x += 2;
                      return all;
                    });
      case 4:
        return made(data::range(n + 1) | data::window<2>({.shift = 1}) | data::map([](auto w) { return w(0, 0) * w(1, 0); }),
                    [=](int) {
                      numbers all = range_of(n);
                      for (auto& x : all) x *= x + 1;
                      return all;
                    });
      default:
        return made(data::from_generator([n] { return range_of(n - 1); }), [=](int) { return range_of(n - 1); });
    }
  }

  std::mt19937 random_;
};
}  // namespace

TEST_CASE("random pipelines do what plain loops do, epoch by epoch") {
  for (unsigned seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    generator g(seed);
    auto [view, model] = g.random_pipeline(1 + g.below(7));
    test::epochs_of epochs(view | data::elements);
    REQUIRE(epochs.next() == model(0));
    REQUIRE(epochs.next() == model(1));

    auto elements = view | data::elements;  // left early, then begun at another epoch
    auto at = elements.begin();
    for (int k = g.below(5); k > 0 && at != elements.end(); --k) ++at;
    elements.set_epoch(3);
    numbers seen;
    for (const auto x : elements) seen.push_back(x);
    REQUIRE(seen == model(3));

    const numbers expected = model(2);
    if (expected.size() < 3) continue;
    auto batches = view | data::batch<3, double> | data::prefetch();
    batches.set_epoch(2);
    numbers rows;
    for (const auto& b : batches)
      for (int k = 0; k < b.count; ++k) rows.push_back(static_cast<std::int64_t>(b.x()[k]));
    REQUIRE(rows == expected);
  }
}
