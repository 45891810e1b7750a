#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <strata/base/random.hpp>
#include <strata/data/core/autotune.hpp>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/prefetch.hpp>
#include <thread>
#include <vector>
using namespace strata;
using namespace strata::core;

namespace {
using clock_type = std::chrono::steady_clock;
using seconds_of_batch = std::function<double(int threads)>;

/// A machine whose clock advances only when batches are made.
class simulation {
 public:
  explicit simulation(int most) : tuner_(most) {}

  /// Returns the seconds spent on making batches, and stores how many threads are used in the end.
  double run(const seconds_of_batch& batch, int batches) {
    double total = 0;
    for (int i = 0; i < batches; ++i) {
      threads_ = tuner_.threads_for_next_batch([&] { return now_; });
      const double seconds = batch(threads_);
      now_ += std::chrono::duration_cast<clock_type::duration>(std::chrono::duration<double>(seconds));
      total += seconds;
    }
    return total;
  }
  int threads() const { return threads_; }
  data::detail::thread_tuner& tuner() { return tuner_; }
  void pass(double seconds) { now_ += std::chrono::duration_cast<clock_type::duration>(std::chrono::duration<double>(seconds)); }

 private:
  data::detail::thread_tuner tuner_;
  clock_type::time_point now_{};
  int threads_ = 0;
};

double best_of(const seconds_of_batch& batch, int most) {
  double best = std::numeric_limits<double>::max();
  for (int n = 1; n <= most; ++n) best = std::min(best, batch(n));
  return best;
}
}  // namespace

TEST_CASE("the threads that are found are within a tenth of the best, and no more than it takes") {
  const seconds_of_batch loads[] = {
      [](int n) { return 0.01 / n; },                  // scales
      [](int n) { return 5e-6 + 2e-6 * (n - 1); },     // too cheap for threads
      [](int n) { return 2e-3 / n + 1e-5 * n; },       // scales for a while
      [](int n) { return 1e-3 / std::min(n, 4); },     // four memory channels
      [](int n) { return std::max(3e-3, 0.01 / n); },  // the consumer takes 3 ms
      [](int n) { return 0.08 + 0.4 / n; },            // long batches
      [](int) { return 1e-3; },                        // independent of the number
      [](int n) { return n > 8 ? 2e-3 : 3e-3 / n; },   // slower with too many threads
  };
  for (const int most : {1, 2, 3, 4, 6, 16, 48})
    for (const auto& load : loads)
      for (const double noise : {0., 0.02}) {
        philox random{7};
        std::uint64_t draw = 0;
        simulation machine(most);
        machine.run([&](int n) { return load(n) * (1 + noise * random.uniform(draw++)); }, 100'000);
        CAPTURE(most);
        CAPTURE(&load - loads);
        CHECK_FALSE(machine.tuner().is_searching());
        CHECK(load(machine.threads()) <= 1.1 * best_of(load, most));
        if (machine.threads() == 1) continue;
        const int fewer = static_cast<int>(std::bit_floor(static_cast<unsigned>(machine.threads() - 1)));
        CHECK(load(fewer) > load(machine.threads()) * (noise > 0 ? 1.02 : 1.04));
      }
}

TEST_CASE("uneven batches and interruptions do not lead astray") {
  philox random{3};
  std::uint64_t draw = 0;
  const auto uneven = [&](int n) {
    const bool heavy = random.uniform(draw++) < 0.2, interrupted = random.uniform(draw++) < 0.003;
    return (heavy ? 4e-3 : 2e-4) / n + (interrupted ? 0.05 : 0);
  };
  simulation machine(8);
  machine.run(uneven, 200'000);
  CHECK(machine.threads() == 8);
}

TEST_CASE("what the trainer does between two epochs does not count") {
  simulation machine(8);
  for (int epoch = 0; epoch < 1000; ++epoch) {
    machine.run([](int n) { return 8e-3 / n; }, 10);
    machine.tuner().pause();
    machine.pass(epoch % 3 * 7.);
  }
  CHECK(machine.threads() == 8);
  CHECK_FALSE(machine.tuner().is_searching());
}

TEST_CASE("another load, another number of threads") {
  simulation machine(16);
  const seconds_of_batch decoding = [](int n) { return 0.02 / n + 1e-5; }, cached = [](int n) { return 1e-5 + 1e-5 * n; };
  machine.run(decoding, 10'000);
  CHECK(machine.threads() == 16);
  machine.run(cached, 100'000);
  CHECK(machine.threads() == 1);
  machine.run(decoding, 10'000);
  CHECK(machine.threads() == 16);
}

TEST_CASE("a machine that never is the same is not searched for ever") {
  simulation machine(16);
  int searches = 0;
  for (int hour = 0; hour < 400; ++hour) {
    machine.run([&](int n) { return (hour % 2 == 0 ? 1e-3 : 4e-3) / n; }, 300);
    searches += machine.tuner().is_searching();
  }
  CHECK(searches < 100);
}

namespace {
/// Blocks the making of batches until it is permitted.
struct gate {
  std::atomic<int> open{0}, made{0};

  void wait() {
    for (int n = open.load(); made.load() >= n; n = open.load()) open.wait(n);
    ++made;
  }
  void let(int batches) {
    open += batches;
    open.notify_all();
  }
  void wait_for(int batches) const {
    while (made.load() < batches) std::this_thread::yield();
  }
};
}  // namespace

TEST_CASE("prefetch(autotune) makes more batches ahead once the consumer had to wait for a thread that had been waiting before") {
  const auto door = std::make_shared<gate>();
  std::vector<float> numbers(5000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  auto view = data::from_range(numbers) | data::map([door](float x) { return door->wait(), x; }) | data::batch<1> |
              data::prefetch(data::autotune);
  CHECK(view.buffer_size() == 2);
  door->let(1);
  auto at = view.begin();
  float expected = 0;
  const auto step = [&] {
    CHECK(*(*at).x() == expected++);
    ++at;
  };

  // A slow thread: the consumer waits each time, but more batches ahead would not help.
  for (int i = 0; i < 20; ++i) {
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      door->let(1);
    });
    step();
    later.join();
  }
  CHECK(view.buffer_size() == 2);

  // An unsteady thread fills the ring and then pauses. (It takes some time until the full ring has been observed.)
  for (std::size_t ahead = 2; ahead <= 256; ahead *= 2)
    for (int attempt = 0; view.buffer_size() == ahead && ahead < 256; ++attempt) {
      REQUIRE(attempt < 200);
      const int ready = door->made - static_cast<int>(expected) - 1, missing = static_cast<int>(ahead) - ready;
      door->let(missing);
      door->wait_for(static_cast<int>(expected) + 1 + static_cast<int>(ahead));
      std::this_thread::sleep_for(std::chrono::milliseconds(1 + attempt));
      for (std::size_t i = 0; i < ahead; ++i) step();
      std::thread later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        door->let(1);
      });
      step();
      later.join();
    }
  CHECK(view.buffer_size() == 256);
  door->let(5000);
  while (at != view.end()) step();
  CHECK(expected == 5000);
}

TEST_CASE("large batches: fewer of them are made ahead") {
  auto view = data::from_range(std::vector<std::array<float, 1 << 20>>(8)) | data::batch<8> | data::prefetch(data::autotune);
  CHECK(view.buffer_size() == 2);
  for (const auto& b : view) CHECK(b.count == 8);
}
