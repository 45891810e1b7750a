// Pipelines over groups of threads: the bits of one device, for every schedule.
#include <doctest/doctest.h>

#include <cstring>
#include <sstream>
#include <strata/communicators/in_process.hpp>
#include <strata/distribute/pipeline.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/strata.hpp>
#include <thread>

#include "error_of.hpp"
#include "gradient_check.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
using deep = sequential<input<40>, dense<48, relu>, dense<32, relu>, dropout<0.2_r>, residual<dense<32, relu>>,
                        dense<24, sigmoid>, dense<5, softmax>>;
using images =
    sequential<input<9, 9, 2>, conv2d<7, 3, relu>, max_pool2d<2>,
               residual<sequential<conv2d<4, 3, same_padding, relu>, conv2d<7, 1>>>, flatten, dense<6, relu>, dense<5, softmax>>;

struct outcome {
  std::vector<float> weights;
  std::vector<double> sums{};
  bool operator==(const outcome& o) const {
    return weights.size() == o.weights.size() && sums == o.sums &&
           std::memcmp(weights.data(), o.weights.data(), weights.size() * sizeof(float)) == 0;
  }
};

template <class Network, class Strategy>
outcome trained(compute_options how) {
  using P = program<Network, sparse_categorical_crossentropy<>, adam, type_list<accuracy>>;
  synchronous_executor<P, typename Strategy::backend> executor(adam{.learning_rate = 0.01}, 5, how);
  executor.prepare(48, purpose::training);
  outcome out;
  std::uint64_t key = 0;
  for (const int size : {48, 48, 7, 32, 1}) {
    const random_batch<P> batch(size, ++key);
    for (const metric_sum& each : executor.train_step(batch.view())) out.sums.push_back(each.sum);
  }
  const std::span<float> w = executor.parameters();
  out.weights.assign(w.begin(), w.end());
  return out;
}
}  // namespace

TEST_CASE("the bits of a pipeline are those of one device") {
  for (const int leaves : {0, 1, 4, 16}) {
    const outcome expected = trained<deep, one_device<>>({.threads = 1, .leaves = leaves});
    CHECK(expected == trained<deep, pipeline<balanced<3>, micro_batches<4>>>({.threads = 1, .leaves = leaves}));
    CHECK(expected == trained<deep, pipeline<stages<1, 2, 3>, micro_batches<8>, gpipe>>({.threads = 2, .leaves = leaves}));
    CHECK(expected == trained<deep, pipeline<balanced<4>, micro_batches<4>, interleaved<2>>>({.threads = 1, .leaves = leaves}));
  }
  const outcome expected = trained<images, one_device<>>({.threads = 1});
  CHECK(expected == trained<images, pipeline<balanced<2>, micro_batches<8>>>({.threads = 1}));
  // The pooling is computed with the convolution before it, as on one device.
  CHECK(expected == trained<images, pipeline<stages<1, 5>, micro_batches<8>>>({.threads = 1}));
  CHECK(expected == trained<images, pipeline<balanced<4>, micro_batches<8>>>({.threads = 1}));
}

TEST_CASE("fit with a pipeline: callbacks, validation, prediction, the plan as text") {
  using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<64, relu>, dense<10, softmax>>;
  const auto digits = data::synthetic_digits(200, 3);
  const auto run = [&](auto&& model) {
    model.fit(digits | data::shuffle(50) | data::batch<32>, epochs(2), verbosity::off, validation(digits | data::batch<30>));
    std::vector<float> all(model.parameters().begin(), model.parameters().end());
    const auto predicted = model.predict(digits | data::batch<20>).values;
    all.insert(all.end(), predicted.begin(), predicted.end());
    return all;
  };
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, pipeline<balanced<2>, micro_batches<4>>{}};
  CHECK(run(model) == run(trainer{net{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}}));
  std::ostringstream text;
  print_plan(model, text);
  CHECK(text.str().find(
            "2 places, one_forward_one_backward of 4 micro-batches, 20.0 % of the time idle if stages take equally long\n"
            "place  groups  ") != std::string::npos);
  CHECK(text.str().find("place 0  F0 F1       B0    F2 B1    F3 B2       B3\n"
                        "place 1     F0 B0    F1 B1    F2 B2    F3 B3\n") != std::string::npos);

  trainer custom{net{}, adam{}, sparse_categorical_crossentropy{}, pipeline<balanced<2>, micro_batches<4>>{}};
  const std::vector<float> x(30 * 784);
  const std::vector<std::int32_t> y(30);
  CHECK(error_of([&] { custom.train_step({x.data(), y.data(), 30}); }) ==
        "a batch of 30 samples cannot be cut into 4 micro-batches of equal size");
}

TEST_CASE("processes with a part of each batch, each with a pipeline") {
  using backend = pipeline<balanced<2>, micro_batches<2>>::backend;
  const auto train = [](auto&& model, std::vector<float>& weights) {
    model.fit(data::synthetic_digits(100, 3) | data::batch<32>, epochs(2), verbosity::off);
    weights.assign(model.parameters().begin(), model.parameters().end());
  };
  using net = sequential<input<28, 28, 1>, flatten, dense<32, relu>, dense<10, softmax>>;
  std::vector<float> expected, found[2];
  train(trainer{net{}, adam{}, sparse_categorical_crossentropy{}, one_device{{.leaves = 4}}}, expected);
  std::vector<std::thread> processes;
  for (in_process& member : in_process::group(2))
    processes.emplace_back([&, member] {
      const synchronous_among<in_process, backend> strategy{member, {.threads = 1, .leaves = 4}};
      train(trainer{net{}, adam{}, sparse_categorical_crossentropy{}, strategy}, found[member.rank()]);
    });
  for (std::thread& each : processes) each.join();
  CHECK(found[0] == expected);
  CHECK(found[1] == expected);
}

TEST_CASE("a batch that micro-batches do not divide is refused, and smaller ones then train") {
  using P = program<deep, sparse_categorical_crossentropy<>, adam, type_list<accuracy>>;
  const auto step = [](auto& executor, int size) {
    const random_batch<P> batch(size, 1);
    executor.prepare(size, purpose::training);
    (void)executor.train_step(batch.view());
    const std::span<const float> w = executor.parameters();
    return std::vector<float>(w.begin(), w.end());
  };
  synchronous_executor<P, pipeline<balanced<2>, micro_batches<8>>::backend> split(adam{}, 5, compute_options{.threads = 1});
  synchronous_executor<P, default_backend> whole(adam{}, 5, compute_options{.threads = 1});
  const char* const words = "samples cannot be cut into 8 micro-batches of equal size";
  CHECK(contains(error_of([&] { split.prepare(100, purpose::training); }), words));
  CHECK(step(split, 96) == step(whole, 96));
  CHECK(step(split, 30) == step(whole, 30));
  CHECK(contains(error_of([&] { split.prepare(100, purpose::training); }), words));
}

TEST_CASE("more threads than can be counted are refused") {
  using P = program<deep, sparse_categorical_crossentropy<>, adam, type_list<accuracy>>;
  using executor = synchronous_executor<P, pipeline<balanced<2>, micro_batches<8>>::backend>;
  CHECK(error_of([] { executor(adam{}, 5, compute_options{.threads = 2147483647}); }) ==
        "with 2 places, each has at most 32768 threads, but 2147483647 were requested");
}
