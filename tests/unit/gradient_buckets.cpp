// Gradients that are sent while others are computed: the parameters are those of one device, whatever is sent when.
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/strata.hpp>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "fake_machines.hpp"
#include "repetitions.hpp"
using namespace strata;
using namespace strata::core;
using strata::test::among_machines;
using strata::test::contains;
using strata::test::is_sanitized;
using strata::test::traffic;

namespace {
using cnn = sequential<input<28, 28, 1>, conv2d<4, 3, relu>, max_pool2d<2>, conv2d<6, 3, relu>, max_pool2d<2>, flatten,
                       dense<16, relu>, dropout<0.2_r>, dense<10, softmax>>;
using normalized = sequential<input<28, 28, 1>, conv2d<6, 3, stride<2>>, batch_norm<>, activation<relu>, conv2d<6, 3, stride<2>>,
                              batch_norm<>, activation<relu>, flatten, dense<10, softmax>>;

const data::digits& digits() {
  static const data::digits d = data::synthetic_digits(150, 3);
  return d;
}

struct outcome {
  std::vector<float> weights;
  double loss = 0;

  bool operator==(const outcome& o) const {
    return weights.size() == o.weights.size() &&
           std::memcmp(weights.data(), o.weights.data(), weights.size() * sizeof(float)) == 0 && loss == o.loss;
  }
};

/// 150 = 2 x 64 + 22: with 16 leaves the last batch leaves some of them empty.
template <class Network>
outcome trained(const auto& strategy, int count = 2) {
  const adam optimizer{.learning_rate = 0.01, .global_clipnorm = 0.5};
  trainer model{Network{}, optimizer, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(7)};
  const training_history past = model.fit(digits() | data::shuffle(150) | data::batch<64>, epochs(count), verbose::off);
  const auto w = model.executor().parameters();
  return {{w.begin(), w.end()}, past["loss"].back()};
}

template <class Network>
std::vector<outcome> among(const std::vector<int>& machines, compute_options compute, communication_options communication,
                           int count = 2) {
  std::vector<outcome> outcomes(machines.size());
  traffic sent;
  for (const auto& f : among_machines(machines, sent, [&](auto c) {
         outcomes[std::size_t(c.rank())] = trained<Network>(synchronous_among{c, compute, communication}, count);
       }))
    CHECK(f == "");
  return outcomes;
}

template <class Network>
void check_all_alike() {
  for (const int leaves : {2, 16}) {
    const outcome expected = trained<Network>(one_device{{.threads = 1, .leaves = leaves, .micro_batch = 4}});
    for (const std::size_t bytes_per_pack : {std::size_t{1}, std::size_t{4096}, std::size_t{0}})
      for (const std::vector<int>& machines : {std::vector<int>{0, 1}, std::vector<int>{0, 0, 1, 1}, std::vector<int>{0, 1, 2}})
        for (const int threads : {1, 2}) {
          if (threads == 2 && machines.size() > 2) continue;
          if (is_sanitized && (leaves == 2 || bytes_per_pack == 0)) continue;
          CAPTURE(leaves);
          CAPTURE(bytes_per_pack);
          CAPTURE(machines.size());
          CAPTURE(threads);
          const compute_options compute{.threads = threads, .leaves = leaves, .micro_batch = 4};
          for (const outcome& o : among<Network>(machines, compute, {.bytes_per_pack = bytes_per_pack})) CHECK(o == expected);
        }
  }
}

template <class Network>
using program_of = program<Network, sparse_categorical_crossentropy<>, adam, type_list<accuracy>>;
}  // namespace

TEST_CASE("buckets: whole layers, the last ones first, from end to end of what is trained") {
  using p = program_of<cnn>;
  constexpr long trainable = layout_of_program<p>.trainable;
  for (const std::size_t bytes : std::vector<std::size_t>{1, 700, 4096, 1 << 30}) {
    const auto buckets = gradient_buckets<p, cpu>(bytes);
    CHECK(buckets.front().end == trainable);
    CHECK(buckets.back().begin == 0);
    for (std::size_t i = 1; i < buckets.size(); ++i) {
      CHECK(buckets[i].end == buckets[i - 1].begin);
      CHECK(buckets[i].group < buckets[i - 1].group);
      CHECK(std::size_t(buckets[i - 1].end - buckets[i - 1].begin) * sizeof(float) >= bytes);
    }
  }
  const auto each = gradient_buckets<p, cpu>(1);
  REQUIRE(each.size() == 4);
  CHECK(std::string(each[0].name) == "gradients of dense_1");
  CHECK(std::string(each[3].name) == "gradients of conv2d");
  const auto all = gradient_buckets<p, cpu>(1 << 30);
  REQUIRE(all.size() == 1);
  CHECK(std::string(all[0].name) == "gradients of conv2d ... dense_1");
}

TEST_CASE("micro-batches, threads, machines and packs of any size: the bits of one device") { check_all_alike<cnn>(); }
TEST_CASE("so with statistics of the whole batch in between") { check_all_alike<normalized>(); }

TEST_CASE("a training sends less between machines that have several processes each") {
  const auto bytes_between = [](const std::vector<int>& machines) {
    traffic sent;
    for (const auto& f :
         among_machines(machines, sent, [](auto c) { trained<cnn>(synchronous_among{c, {.threads = 1, .leaves = 4}}, 1); }))
      CHECK(f == "");
    return double(sent.between_machines);
  };
  CHECK(bytes_between({0, 0, 1, 1}) < 0.6 * bytes_between({0, 1, 0, 1}));
}

TEST_CASE("gradients in bfloat16: all processes have the same parameters, again the same, and learn as well") {
  const compute_options compute{.threads = 1, .leaves = 4};
  const int count = 6;
  const outcome exact = trained<cnn>(one_device{compute}, count);
  const outcome untrained = trained<cnn>(one_device{compute}, 1);
  const auto rounded = among<cnn>({0, 0, 1, 1}, compute, {.bytes_per_pack = 4096, .bf16_gradients = true}, count);
  for (const outcome& o : rounded) CHECK(o == rounded[0]);
  CHECK(among<cnn>({0, 0, 1, 1}, {.threads = 2, .leaves = 4}, {.bytes_per_pack = 4096, .bf16_gradients = true}, count)[0] ==
        rounded[0]);
  CHECK(std::isfinite(rounded[0].loss));
  CHECK(!(rounded[0] == exact));
  REQUIRE(untrained.loss - exact.loss > 0.1);
  CHECK(std::abs(rounded[0].loss - exact.loss) < 0.05 * (untrained.loss - exact.loss));
}

TEST_CASE("who is waited for in vain is named with the layers whose gradients are missing") {
  traffic sent;
  const auto failures = among_machines(
      {0, 1}, sent,
      [&](auto c) {
        trainer model{cnn{}, sgd{}, sparse_categorical_crossentropy{}, accuracy{},
                      synchronous_among{c, {.threads = 1, .leaves = 4}, {.bytes_per_pack = 4096}}};
        const std::vector<float> x(50 * 784, 0.5f);
        const std::vector<std::int32_t> labels(50, 3);
        if (c.rank() == 0) model.train_step({x.data(), labels.data(), 50});
      },
      std::chrono::milliseconds(300));
  CHECK(contains(failures[0], "gradients of dense ... dense_1: process 0 has waited 300 ms for process 1"));
}
