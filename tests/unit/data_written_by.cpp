// Batches that are written by the threads of a training: the same ones, and only where no function of the user's runs.
#include <doctest/doctest.h>

#include <cstdint>
#include <strata/data.hpp>
#include <strata/strata.hpp>
#include <utility>
#include <vector>
using namespace strata;

namespace {

constexpr int size = 600;
using classifier = sequential<input<size>, dense<3, softmax>>;

auto digits_of(std::size_t count) {
  std::vector<std::uint8_t> x(count * size);
  std::vector<int> y(count);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::uint8_t(philox{3}(i)[0]);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = int(i % 3);
  return data::from_tensor_slices(data::array<std::uint8_t, shape{size}>(std::move(x)), y);
}
auto pipeline() { return digits_of(100) | data::shuffle(50, {.seed = 4}) | data::scale(1. / 255) | data::batch<32>; }

template <class V>
constexpr bool is_shared = data::detail::has_written_by<V>;

/// All numbers and labels of a pass.
std::vector<float> pass(auto& batches) {
  std::vector<float> all;
  batches.set_epoch(2);
  for (const samples<float>& batch : batches) {
    all.insert(all.end(), batch.x, batch.x + batch.count * size);
    all.insert(all.end(), batch.labels, batch.labels + batch.count);
  }
  return all;
}

}  // namespace

TEST_CASE("each row is written once, whoever writes it") {
  auto batches = pipeline();
  const std::vector<float> expected = pass(batches);
  std::vector<std::size_t> counts;
  batches.written_by([&](std::size_t count, const auto& write) {
    counts.push_back(count);
    for (std::size_t end = count; end > 0;) {  // parts of other sizes, the last ones first
      const std::size_t begin = end > 7 ? end - 7 : 0;
      write(begin, end);
      end = begin;
    }
  });
  CHECK(pass(batches) == expected);
  CHECK(counts == std::vector<std::size_t>{32, 32, 32, 4});

  batches.only_rows([](int count) { return row_range{count / 2, count}; });
  counts.clear();
  pass(batches);
  CHECK(counts == std::vector<std::size_t>{16, 16, 16, 2});

  batches.written_by({});
  batches.only_rows({});
  CHECK(pass(batches) == expected);
}

TEST_CASE("what the user's functions make is written by the threads that the user asks for") {
  const auto made = data::range(40) | data::map([](std::int64_t i) { return std::pair(float(i), int(i)); });
  CHECK(is_shared<decltype(pipeline())>);
  CHECK(is_shared<decltype(pipeline() | data::take(2))>);
  CHECK_FALSE(is_shared<decltype(made | data::batch<32>)>);
  CHECK_FALSE(is_shared<decltype(made | data::scale(2) | data::batch<32>)>);
  CHECK_FALSE(is_shared<decltype(pipeline() | data::prefetch(2))>);  // whose thread writes while a step is under way
}

TEST_CASE("a batch of a few bytes is not worth a second thread") {
  auto batches = data::from_tensor_slices(std::vector<float>(64), std::vector<int>(64)) | data::batch<32>;
  int calls = 0;
  batches.written_by([&](std::size_t count, const auto& write) {
    ++calls;
    write(0, count);
  });
  for ([[maybe_unused]] const auto& batch : batches) {
  }
  CHECK(calls == 0);
}

TEST_CASE("a source outlives the threads of the training that wrote its batches, and training is the same for any number of them") {
  std::vector<float> weights[3];
  for (int threads : {1, 2, 3}) {
    auto batches = pipeline();
    auto untouched = pipeline();
    {
      trainer model{classifier{}, sgd{}, sparse_categorical_crossentropy{}, one_device{{.threads = threads}}};
      model.fit(batches, epochs(2), verbosity::off);
      model.evaluate(batches);
      const auto parameters = model.parameters();
      weights[threads - 1].assign(parameters.begin(), parameters.end());
    }
    CHECK(pass(batches) == pass(untouched));
  }
  CHECK(weights[0] == weights[1]);
  CHECK(weights[0] == weights[2]);
}
