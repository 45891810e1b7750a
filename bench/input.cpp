// Samples per second of input pipelines: shuffled bytes as floats, functions of samples on several threads, prefetch, autotune.
// Prints one JSON object per line; with --peers beside tf.data and PyTorch's DataLoader, as bench/run sweep does it.
#include <strata/data/sets/digits.hpp>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/prefetch.hpp>
#include <strata/data/views/scale.hpp>
#include <strata/data/views/shuffle.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "machine.hpp"
#include "support/options.hpp"

using namespace strata;
using namespace strata::bench;

namespace {

constexpr int batch_size = 64;
constexpr std::size_t images = 60'000;

struct settings {
  std::string only;
  int threads = static_cast<int>(std::thread::hardware_concurrency());
  double seconds = 1;

  bool wants(const std::string& name) const { return only.empty() || only == name; }
};

/// Reads one batch after the other, over as many epochs as needed.
template <class View>
class endless {
 public:
  explicit endless(View view) : view_(std::move(view)), at_(view_.begin()) {}

  void next() {
    if (at_ == view_.end()) at_ = view_.begin();
    [[maybe_unused]] volatile float first = (*at_).x()[0];
    ++at_;
  }
  /// Seconds of a batch, on average.
  double seconds_of_batch(double seconds) {
    const double start = now();
    double passed = 0;
    long batches = 0;
    do {
      next();
      ++batches;
      passed = now() - start;
    } while (passed < seconds);
    return passed / double(batches);
  }

 private:
  View view_;
  std::ranges::iterator_t<View> at_;
};

/// The fastest of several rounds counts, because other programs may use the machine.
template <class View>
double samples_per_second(View view, double seconds) {
  constexpr int rounds = 5;
  endless batches(std::move(view));
  double best = 1e30;
  for (int round = 0; round < rounds; ++round) best = std::min(best, batches.seconds_of_batch(seconds / rounds));
  return batch_size / best;
}

void print(const std::string& name, int threads, double speed) {
  std::printf("{\"name\": \"%s\", \"batch\": %d, \"threads\": %d, \"samples_per_second\": %.1f}\n", name.c_str(), batch_size,
              threads, speed);
  std::fflush(stdout);
}

auto digits_in_memory() {
  std::vector<std::uint8_t> pixels(images * data::digit_shape.size());
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = std::uint8_t(i * 2'654'435'761u >> 24);
  return data::from_tensor_slices(data::array<std::uint8_t, data::digit_shape>(std::move(pixels)), std::vector<int>(images, 1));
}

/// The counterpart of tf.image.per_image_standardization.
constexpr auto standardize = [](auto image, auto out) {
  constexpr int n = decltype(image)::extents.size();
  int sum = 0, squares = 0;
  for (int k = 0; k < n; ++k) sum += image.data[k], squares += image.data[k] * image.data[k];
  const float mean = float(sum) / n, deviation = std::sqrt(std::max(0.f, float(squares) / n - mean * mean));
  const float factor = 1 / std::max(deviation, 1 / std::sqrt(float(n)));
  for (int k = 0; k < n; ++k) out.data[k] = (float(image.data[k]) - mean) * factor;
};

/// The measurements that the peers have as well.
void standard_pipelines(const settings& s) {
  constexpr auto batches = data::batch<batch_size, data::drop_remainder>;
  if (s.wants("u8_28x28"))
    print("u8_28x28", 1,
          samples_per_second(digits_in_memory() | data::scale(1.0 / 255) | data::shuffle(images) | batches, s.seconds));
  if (s.wants("u8_28x28_run_time")) {  // the size of the batch is known at run time only
    const volatile int size = batch_size;
    print("u8_28x28_run_time", 1,
          samples_per_second(
              digits_in_memory() | data::scale(1.0 / 255) | data::shuffle(images) | data::batch<data::drop_remainder>(size),
              s.seconds));
  }
  if (s.wants("standardized_28x28"))
    print("standardized_28x28", s.threads,
          samples_per_second(digits_in_memory() | data::shuffle(images) |
                                 data::map_to<data::digit_shape>(standardize, data::parallel(s.threads)) | batches,
                             s.seconds));
}

/// Computes for `rounds` rounds of about 10 ns each.
float work(int rounds, float x) {
  for (int k = 0; k < rounds; ++k) x = std::sqrt(x * 1.5f + 1);
  return x;
}
struct load {
  const char* name;
  int usual, every_16th;  // rounds for a sample
};
constexpr load loads[] = {{"cheap", 1, 1}, {"expensive", 3'000, 3'000}, {"uneven", 200, 30'000}};

auto pipeline(const load& l, data::parallel threads) {
  std::vector<float> numbers(64 * batch_size);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = float(i);
  const auto f = [l](float x) { return work(int(x) % 16 == 5 ? l.every_16th : l.usual, x); };
  return data::from_range(std::move(numbers)) | data::map(f, threads) | data::batch<batch_size>;
}

/// Measures fixed numbers of threads and autotune in turn.
void autotune_beside_fixed(const settings& s) {
  std::vector<int> counts;
  for (int n = 1; n < s.threads; n *= 2) counts.push_back(n);
  counts.push_back(s.threads);
  for (const load& l : loads) {
    if (!s.wants("autotune") && !s.wants(l.name)) continue;
    endless tuned(pipeline(l, data::parallel(data::autotune)));
    tuned.seconds_of_batch(std::max(1., s.seconds));  // until autotune has settled
    std::vector<endless<decltype(pipeline(l, data::parallel(1)))>> fixed;
    fixed.reserve(counts.size());  // pipelines must not move
    for (const int n : counts) fixed.emplace_back(pipeline(l, data::parallel(n)));
    std::vector<double> best(counts.size(), 1e30);
    double best_tuned = 1e30;
    for (int round = 0; round < 5; ++round) {
      best_tuned = std::min(best_tuned, tuned.seconds_of_batch(s.seconds / 5));
      for (std::size_t i = 0; i < counts.size(); ++i) best[i] = std::min(best[i], fixed[i].seconds_of_batch(s.seconds / 5));
    }
    std::printf("{\"name\": \"autotune\", \"load\": \"%s\", \"samples_per_second\": {", l.name);
    for (std::size_t i = 0; i < counts.size(); ++i) std::printf("\"%d\": %.0f, ", counts[i], batch_size / best[i]);
    std::printf("\"autotune\": %.0f}, \"share_of_best\": %.3f}\n", batch_size / best_tuned,
                *std::min_element(best.begin(), best.end()) / best_tuned);
    std::fflush(stdout);
  }
}

/// Measures the share of a loader's time that prefetch hides if loading takes as long as the step; 1 is all of it.
template <class Make, class Step>
void hide(const char* name, const settings& s, Make&& make, Step&& step) {
  const int batches = std::max(20, int(s.seconds / 0.002));
  const auto seconds_of = [&](auto view) {
    double start = 0;
    int n = 0;
    for (const auto& b : view) {
      if (n == 0) start = now();  // the first batch cannot be hidden
      step(b.x()[0]);
      if (++n == batches) break;
    }
    return (now() - start) / n;
  };
  double alone = 1e30, without = 1e30, with = 1e30;
  for (int round = 0; round < 3; ++round) {
    alone = std::min(alone, best_time(1, batches, [&] { step(1.f); }));
    without = std::min(without, seconds_of(make()));
    with = std::min(with, seconds_of(make() | data::prefetch(data::autotune)));
  }
  std::printf(
      "{\"name\": \"prefetch\", \"load\": \"%s\", \"microseconds\": {\"step\": %.1f, \"without\": %.1f, "
      "\"with\": %.1f}, \"share_of_ideal\": %.3f}\n",
      name, 1e6 * alone, 1e6 * without, 1e6 * with, alone / with);
  std::fflush(stdout);
}

void prefetch_hides(const settings& s) {
  if (!s.wants("prefetch")) return;
  const int rounds = smoke_test ? 1'000 : 100'000;
  const auto pipeline_of = [](auto f) {
    return [f] { return data::from_range(std::vector<float>(1'000'000)) | data::map(f) | data::batch<1>; };
  };
  const auto nap = [](float x) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return x;
  };
  const auto compute = [rounds](float x) { return work(rounds, x); };
  [[maybe_unused]] volatile float sink = 0;
  hide("sleeping", s, pipeline_of(nap), [&](float x) { sink = nap(x); });
  hide("computing", s, pipeline_of(compute), [&](float x) { sink = compute(x); });
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  strata::bench::options("Input pipelines. With --peers torch,keras: beside tf.data and PyTorch, see sweep --help.")
      .add("--only", s.only,
           "u8_28x28, u8_28x28_run_time, standardized_28x28, autotune, one of its loads (cheap, expensive, uneven), or prefetch")
      .add("--threads", s.threads, "maximum number of threads")
      .add("--seconds", s.seconds, "for each measurement")
      .smoke("--threads 2 --seconds 0.01")
      .parse(argc, argv);
  s.threads = std::max(1, s.threads);
  standard_pipelines(s);
  autotune_beside_fixed(s);
  prefetch_hides(s);
}
