// Layers on several devices of one machine: the bits of the same network on one device.
#include <doctest/doctest.h>

// This file includes engine and strategy in one order; pipeline.cpp tests the other one.
#include <strata/strata.hpp>

#include <strata/distribute/placed.hpp>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <sstream>

#include "gradient_check.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
/// The same items, inside `on` and as a plain branch.
template <int Index, class... Items>
using here = on_device<Index, Items...>;
template <int, class... Items>
using anywhere = branch<Items...>;

/// Two branches at a time; the order of their devices does not matter.
template <template <int, class...> class At>
using two_branches =
    sequential<input<40>, dense<48, relu>, add<At<0, dense<32, relu>>, At<1, dense<32, relu>>>, dense<5, softmax>>;
template <template <int, class...> class At>
using exchanged = sequential<input<40>, dense<48, relu>, add<At<1, dense<32, relu>>, At<0, dense<32, relu>>>, dense<5, softmax>>;
/// Three devices; a skip connection over two of them; one output is read by devices 1, 0, 1 in turn; dropout; images. The pooling
/// is computed where the convolution is, because one kernel computes both.
template <template <int, class...> class At>
using images = sequential<input<9, 9, 2>, At<0, conv2d<7, 3, relu>>, At<1, max_pool2d<2>>,
                          concat<At<1, conv2d<4, 3, same_padding, relu>>, At<0, conv2d<4, 1>>, At<1, conv2d<3, 1, relu>>>,
                          residual<At<2, conv2d<11, 3, same_padding>, dropout<0.3_r>>>, At<2, flatten>, At<1, dense<6, relu>>,
                          dense<5, softmax>>;
template <template <int, class...> class At>
using regularized = sequential<input<40>, At<1, dense<48, sigmoid, kernel_regularizer<l2<0.01_r>>>>, frozen<At<0, dense<32>>>,
                               residual<At<1, dense<32, relu>>, branch<>>, At<1, layer_norm<>>, dense<5, softmax>>;

struct outcome {
  std::vector<float> weights;
  std::vector<double> sums{};
  bool operator==(const outcome& o) const {
    return weights.size() == o.weights.size() && sums == o.sums &&
           std::memcmp(weights.data(), o.weights.data(), weights.size() * sizeof(float)) == 0;
  }
};

template <class Network, class Backend>
outcome trained(compute_options how, std::initializer_list<int> sizes = {24, 24, 7, 24, 1}) {
  using P = program<Network, sparse_categorical_crossentropy<>, adam, type_list<accuracy>>;
  synchronous_executor<P, Backend> executor(adam{.learning_rate = 0.01}, 5, how);
  executor.prepare(24, purpose::training);
  outcome out;
  std::uint64_t key = 0;
  for (const int size : sizes) {
    const random_batch<P> batch(size, ++key);
    for (const metric_sum& each : executor.train_step(batch.view())) out.sums.push_back(each.sum);
  }
  executor.prepare(24, purpose::inference);
  const random_batch<P> batch(24, 99);
  for (const metric_sum& each : executor.evaluate_step(batch.view())) out.sums.push_back(each.sum);
  const std::span<float> w = executor.parameters();
  out.weights.assign(w.begin(), w.end());
  return out;
}
template <int Devices>
using placed_backend = typename placed<thread_groups<Devices>>::backend;
}  // namespace

TEST_CASE("layers on several devices: the bits of one device") {
  const auto check = []<class Placed, class Plain, int Devices>(std::type_identity<Placed>, std::type_identity<Plain>,
                                                                std::integral_constant<int, Devices>) {
    const outcome expected = trained<Plain, cpu>({.threads = 1, .leaves = 4});
    CHECK(expected == trained<Placed, placed_backend<Devices>>({.threads = 1, .leaves = 4}));
    CHECK(expected == trained<Placed, placed_backend<Devices>>({.threads = 2, .leaves = 4, .micro_batch = 2}));
    CHECK(expected == trained<Placed, placed_backend<Devices>>({.threads = 1, .leaves = 4, .micro_batch = 1}));
  };
  check(std::type_identity<two_branches<here>>{}, std::type_identity<two_branches<anywhere>>{}, std::integral_constant<int, 2>{});
  check(std::type_identity<exchanged<here>>{}, std::type_identity<exchanged<anywhere>>{}, std::integral_constant<int, 2>{});
  check(std::type_identity<images<here>>{}, std::type_identity<images<anywhere>>{}, std::integral_constant<int, 3>{});
  check(std::type_identity<regularized<here>>{}, std::type_identity<regularized<anywhere>>{}, std::integral_constant<int, 3>{});
}

namespace {
/// Blocks the backward call of each of two groups until the other one has begun.
class waits_for_each_other : public kernel_observer {
  std::mutex mutex_;
  std::condition_variable changed_;
  int groups_[2], begun_[2][2] = {};

 public:
  int meetings = 0;
  waits_for_each_other(int one, int other) : groups_{one, other} {}
  bool reads_gradients() const override { return false; }
  void begins(const observed_call& call) override {
    const int i = call.group == groups_[0] ? 0 : 1, direction = int(call.direction);
    if (call.group != groups_[i]) return;
    std::unique_lock lock(mutex_);
    if (++begun_[i][direction] > 1) return;
    changed_.notify_all();
    meetings += changed_.wait_for(lock, std::chrono::seconds(30), [&] { return begun_[1 - i][direction] > 0; });
  }
  void ended(const observed_call&, const observed_numbers&) override {}
};
}  // namespace

TEST_CASE("branches on two devices are computed at the same time, forward and backward") {
  using P = program<two_branches<here>, sparse_categorical_crossentropy<>, adam, type_list<>>;
  synchronous_executor<P, placed_backend<2>> executor(adam{}, 5, {.threads = 1});
  constexpr const auto& plan = plan_of<P, placed_backend<2>>;
  constexpr const auto& stages = stage_plan_of<P, placed_backend<2>>;
  static_assert(stages.stage_of[1] == 0 && stages.stage_of[2] == 1 && plan.groups[3].input[0] == 1 &&
                plan.groups[3].input[1] == 2);
  waits_for_each_other observer(1, 2);
  executor.observe(&observer);
  executor.prepare(16, purpose::training);
  const random_batch<P> batch(16);
  executor.train_step(batch.view());
  CHECK(observer.meetings == 4);
}

TEST_CASE("callbacks, files, freezing, prediction and printing work on several devices") {
  using net = sequential<input<28, 28, 1>, flatten, dense<16, relu>, add<here<0, dense<8, relu>>, here<1, dense<8, relu>>>,
                         dense<10, softmax>>;
  using plain = sequential<input<28, 28, 1>, flatten, dense<16, relu>, add<dense<8, relu>, dense<8, relu>>, dense<10, softmax>>;
  const auto digits = data::synthetic_digits(200, 3);
  const auto run = [&](auto&& model) {
    model.set_trainable("dense", false);
    model.fit(digits | data::shuffle(50) | data::batch<32>, epochs(1), verbosity::off, validation(digits | data::batch<32>));
    model.set_trainable("dense", true);
    model.fit(digits | data::batch<32>, epochs(2), initial_epoch(1), verbosity::off);
    std::vector<float> all(model.parameters().begin(), model.parameters().end());
    const auto predicted = model.predict(digits | data::batch<32>).values;
    all.insert(all.end(), predicted.begin(), predicted.end());
    all.push_back(float(model.evaluate(digits | data::batch<32>)["accuracy"]));
    return all;
  };
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, placed{thread_groups<2>{1}}};
  CHECK(run(model) == run(trainer{plain{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}}));
  std::ostringstream text;
  print_plan(model, text);
  CHECK(text.str().find("2 devices\ndevice  groups ") != std::string::npos);
  CHECK(text.str().find("output of %0    0            1   64.00 B           forward of %0   forward of %2\n") !=
        std::string::npos);
  CHECK(text.str().find("gradient of %0  1            0   64.00 B           backward of %2  backward of %1\n") !=
        std::string::npos);
}
