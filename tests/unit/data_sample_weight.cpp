// Weights of samples in a pipeline: they stay with their samples through every stage, or the stage refuses them.
#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <strata/data/image/random_flip.hpp>
#include <strata/data/sources/from_range.hpp>
#include <strata/data/sources/from_tensor_slices.hpp>
#include <strata/data/sources/range.hpp>
#include <strata/data/views/batch.hpp>
#include <strata/data/views/cache.hpp>
#include <strata/data/views/check_finite.hpp>
#include <strata/data/views/concatenate.hpp>
#include <strata/data/views/enumerate.hpp>
#include <strata/data/views/filter.hpp>
#include <strata/data/views/ignore_errors.hpp>
#include <strata/data/views/map.hpp>
#include <strata/data/views/one_hot.hpp>
#include <strata/data/views/prefetch.hpp>
#include <strata/data/views/repeat.hpp>
#include <strata/data/views/sample_weight.hpp>
#include <strata/data/views/scale.hpp>
#include <strata/data/views/shard.hpp>
#include <strata/data/views/shuffle.hpp>
#include <strata/data/views/skip.hpp>
#include <strata/data/views/take.hpp>
#include <strata/data/views/unbatch.hpp>
#include <strata/data/views/window.hpp>
#include <strata/data/views/zip.hpp>
#include <vector>

#include "error_of.hpp"
using namespace strata;
using namespace strata::core;
using test::error_of;

namespace {
constexpr int count = 12;
/// Sample i is (i), its label i.
auto numbers(int n = count) {
  std::vector<float> x;
  std::vector<int> y;
  for (int i = 0; i < n; ++i) x.push_back(float(i)), y.push_back(i);
  return data::from_tensor_slices(data::array<float, shape{1}>(std::move(x)), y);
}
/// The weight of sample i is i + 0.5.
std::vector<float> halves(int n = count) {
  std::vector<float> w;
  for (int i = 0; i < n; ++i) w.push_back(float(i) + 0.5f);
  return w;
}
/// x and the weight of all samples in their batches; -1 if there is no weight.
template <class Batches>
std::vector<std::pair<float, float>> pairs(Batches batches) {
  std::vector<std::pair<float, float>> all;
  const int size = Batches::sample_shape.size();
  for (const auto& batch : batches)
    for (int n = 0; n < batch.count; ++n)
      all.emplace_back(batch.x()[n * size], batch.truths[0].weights ? batch.truths[0].weights[n] : -1.0f);
  return all;
}
/// Whether there are so many samples, and the weight of each is of(x).
template <class Batches, class F>
bool all_weigh(Batches batches, std::size_t samples, F of) {
  const auto found = pairs(std::move(batches));
  bool right = found.size() == samples;
  for (const auto& [x, weight] : found) right = right && weight == of(x);
  return right;
}
float half_more(float x) { return x + 0.5f; }
}  // namespace

TEST_CASE("a list of weights stays with its samples through stages of samples") {
  const auto set = numbers() | data::sample_weight(halves());
  CHECK(all_weigh(set | data::batch<5>, 12, half_more));
  CHECK(all_weigh(set | data::batch(5), 12, half_more));
  CHECK(all_weigh(set | data::shuffle(100, {.seed = 3}) | data::batch<5>, 12, half_more));
  CHECK(all_weigh(set | data::skip(3) | data::take(6) | data::batch<4>, 6, half_more));
  CHECK(all_weigh(set | data::shard(3, 1) | data::batch<4>, 4, half_more));
  CHECK(all_weigh(set | data::repeat(2) | data::batch<7>, 24, half_more));
  CHECK(all_weigh(set | data::filter([](auto, int y) { return y % 2 == 0; }) | data::batch<4>, 6, half_more));
  CHECK(all_weigh(set | data::scale(2) | data::batch<4>, 12, [](float x) { return x / 2 + 0.5f; }));
  CHECK(all_weigh(set | data::check_finite | data::one_hot<count> | data::batch<4>, 12, half_more));
  CHECK(all_weigh(set | data::map([](auto x, int y) { return std::pair(std::array{x(0)}, y); }) | data::batch<4>, 12, half_more));
  CHECK(all_weigh(set | data::map_to<shape{1}>([](auto x, auto out) { out(0) = x(0); }) | data::batch<4>, 12, half_more));
  CHECK(all_weigh(set | data::batch<4> | data::prefetch(2), 12, half_more));
  CHECK(all_weigh(set | data::batch<4> | data::map([](auto& batch) { batch.x()[0] += 0; }), 12, half_more));
}

TEST_CASE("a list of weights in a cache, and around one") {
  auto kept = numbers() | data::sample_weight(halves()) | data::cache | data::shuffle(5, {.seed = 1}) | data::batch<5>;
  CHECK(all_weigh(kept, 12, half_more));
  CHECK(all_weigh(kept, 12, half_more));  // from memory
  CHECK(all_weigh(numbers() | data::cache | data::sample_weight(halves()) | data::batch<5>, 12, half_more));
}

TEST_CASE("weights of samples that several others make") {
  const auto set = numbers() | data::sample_weight(halves());
  CHECK(all_weigh(set | data::window<3>({.shift = 1}) | data::batch<4>, 10,
                  [](float x) { return x + 2.5f; }));  // the weight of the last sample
  CHECK(all_weigh(data::concatenate(set, numbers()) | data::batch<5>, 24,
                  [first = 0](float x) mutable { return first++ < 12 ? x + 0.5f : 1.0f; }));
  CHECK(all_weigh(data::concatenate(set | data::shuffle(3), set) | data::batch<5>, 24, half_more));
  const auto x =
      data::from_tensor_slices(data::array<float, shape{1}>(std::vector<float>{0, 1, 2})) | data::sample_weight(halves(3));
  const auto y = data::from_tensor_slices(std::vector{7, 8, 9});
  CHECK(all_weigh(data::zip(x, y) | data::batch<2>, 3, half_more));
  CHECK(all_weigh(data::zip(x | data::shuffle(3), y) | data::batch<2>, 3, half_more));
  CHECK(all_weigh(set | data::enumerate() |
                      data::map([](std::int64_t, auto x0, int y0) { return std::pair(std::array{x0(0)}, y0); }) | data::batch<5>,
                  12, half_more));
}

TEST_CASE("a function of x and y gives weights, of streams, too") {
  const auto by_label = data::sample_weight([](auto, int y) { return y % 3 == 0 ? 5.0 : 1.0; });
  const auto expected = [](float x) { return int(x) % 3 == 0 ? 5.0f : 1.0f; };
  CHECK(all_weigh(numbers() | by_label | data::shuffle(4) | data::batch<5>, 12, expected));
  const auto stream = data::range(count) | data::map([](auto i) { return std::pair(std::array{float(i)}, int(i)); }) |
                      data::filter([](auto, int) { return true; }) | data::cache | by_label;
  CHECK(all_weigh(stream | data::batch<5>, 12, expected));
  CHECK(all_weigh(data::from_tensor_slices(data::array<float, shape{1}>(std::vector<float>{1, -2})) |
                      data::sample_weight([](auto x) { return x(0); }) | data::batch<2>,
                  2, [](float x) { return x; }));  // a negative weight is allowed, as in Keras
}

TEST_CASE("only the weights of rows that this process reads are computed") {
  std::vector<int> seen;
  auto batches = numbers() | data::sample_weight([&](auto, int y) { return seen.push_back(y), 1.0; }) | data::batch<4>;
  batches.only_rows([](int) { return row_range{1, 3}; });
  for (const auto& batch : batches) CHECK(batch.count == 4);
  CHECK(seen == std::vector{1, 2, 5, 6, 9, 10});
}

TEST_CASE("errors name the sample") {
  CHECK(error_of([] { numbers() | data::sample_weight(halves(3)); }) ==
        "sample_weight: 3 weights for the 12 samples of the data set");
  auto weights = halves();
  weights[7] = std::numeric_limits<float>::quiet_NaN();
  CHECK(error_of([&] { numbers() | data::sample_weight(weights); }) == "sample_weight: the weight of sample 7 is nan");
  CHECK(error_of([&] {
          pairs(numbers() | data::sample_weight([](auto, int y) { return 1 / float(y - 2); }) | data::batch<4>);
        }) == "sample_weight: the weight of sample 2 is inf");
  CHECK(error_of([&] { pairs(numbers() | data::sample_weight(halves()) | data::batch<4> | data::unbatch | data::batch<4>); }) ==
        "unbatch: the samples would lose their weights: put sample_weight after it");
}
