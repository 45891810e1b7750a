// The moving average of weights: beside every kind of rule, with the same bits for any number of threads and after a resume.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <strata/callbacks/average_weights.hpp>
#include <strata/distribute/mirrored.hpp>
#include <strata/optimizers/ema.hpp>
#include <strata/strata.hpp>
#include <strata/train/backup_and_restore.hpp>
#include <strata/train/take_averages.hpp>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "scratch_folder.hpp"
using namespace strata;
using namespace strata::core;
using strata::test::error_of;

namespace {

using net = sequential<input<5>, dense<7, relu>, batch_norm<>, dense<3, softmax>>;
using numbers = std::vector<float>;

auto batches() {
  std::vector<float> x(48 * 5);
  std::vector<int> y(48);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(philox{3}.uniform(i));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = int(3 * philox{4}.uniform(i));
  return data::from_tensor_slices(data::array<float, shape{5}>(std::move(x)), y) | data::batch<16>;
}
auto make(auto optimizer, auto... more) {
  return trainer{net{}, optimizer, sparse_categorical_crossentropy{}, one_device{{.threads = 1, .leaves = 4}}, more...};
}
numbers weights_of(const auto& model) { return {model.parameters().begin(), model.parameters().end()}; }

/// Weights after each update of an optimizer without averages.
struct remembered {
  std::vector<numbers>& all;
  void on_batch_end(training_state&, fitted_model& model) {
    numbers now;
    for (const named_array& a : model.weights()) {
      const auto* from = reinterpret_cast<const float*>(a.bytes.data());
      now.insert(now.end(), from, from + a.bytes.size() / sizeof(float));
    }
    all.push_back(std::move(now));
  }
};

template <class Optimizer>
void check_average(const Optimizer& optimizer) {
  INFO(Optimizer::name);
  const auto data = batches();
  std::vector<numbers> path;
  auto plain = make(optimizer);
  plain.fit(data, epochs(3), verbosity::off, remembered{path});
  auto averaging = make(ema{optimizer, 0.75});
  averaging.fit(data, epochs(3), verbosity::off);
  CHECK(weights_of(plain) == weights_of(averaging));

  std::vector<numbers> taken;
  struct last {
    std::vector<numbers>& to;
    void on_train_end(training_state& s, fitted_model& model) { remembered{to}.on_batch_end(s, model); }
  };
  auto finished = make(ema{optimizer, 0.75});
  finished.fit(data, epochs(3), verbosity::off, average_weights{}, last{taken});
  take_averages(averaging);
  CHECK(weights_of(averaging) == weights_of(finished));

  REQUIRE(path.size() == 9);
  numbers expected = path[0];
  for (std::size_t step = 1; step < path.size(); ++step)
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += 0.25f * (path[step][i] - expected[i]);
  REQUIRE(taken.back().size() == expected.size());
  const std::size_t state = 2 * 7;  // moving mean and variance, which are not averaged
  std::size_t differing = 0, moved = 0;
  for (std::size_t k = 0; k < expected.size(); ++k) {
    if (taken.back()[k] != doctest::Approx(expected[k]).epsilon(1e-5).scale(0.1)) ++differing;
    moved += taken.back()[k] != path.back()[k];
  }
  CHECK(differing <= state);
  CHECK(moved > 20);
}

}  // namespace

TEST_CASE("the weights are those without an average, and the average follows them, for each kind of rule") {
  check_average(sgd{.learning_rate = 0.1});
  check_average(sgd{.learning_rate = 0.1, .momentum = 0.9, .clipnorm = 1});
  check_average(adam{.learning_rate = 0.01, .amsgrad = true});
  check_average(lamb{.learning_rate = 0.01, .weight_decay = 0.1});
  check_average(adafactor{.learning_rate = 0.01, .weight_decay = 0.1});
}

TEST_CASE("the averages of Keras 3.15.1") {
  double w[] = {1, 2}, average[] = {0, 0};
  const double gradient[] = {0.5, -1};
  double* const none[1] = {};
  const double recorded[][2] = {{0.75, 2.5}, {0.6875, 2.625}, {0.578125, 2.84375}, {0.43359375, 3.1328125}};
  const ema optimizer{sgd{.learning_rate = 0.5}, 0.75};
  for (long step = 0; step < 4; ++step) {
    optimizer.with_rule<double>(step, 0.5, [&]<class Rule>(const Rule& rule) {
      if constexpr (Rule::slots == 1)
        for (int i = 0; i < 2; ++i)
          rule(w[i],
               whole_batch_reduction::reduce(leaf_gradients<double, host_device>{none, 1, 0, 1, 1}, 1).mean().of(gradient[i]),
               average[i]);
    });
    for (int i = 0; i < 2; ++i) CHECK(average[i] == recorded[step][i]);
  }
}

TEST_CASE("the same bits on several threads and after an interruption") {
  const test::scratch_folder folder("ema");
  const auto data = batches();
  const auto expected = [&] {
    auto model = make(ema{adam{}});
    model.fit(data, epochs(4), verbosity::off, average_weights{});
    return weights_of(model);
  }();
  trainer several{net{}, ema{adam{}}, sparse_categorical_crossentropy{}, mirrored{cpus(2), {.leaves = 4}}};
  several.fit(data, epochs(4), verbosity::off, average_weights{});
  CHECK(weights_of(several) == expected);

  struct power_cut {};
  struct cut {
    void on_epoch_end(training_state& s) {
      if (s.epoch == 2) throw power_cut();
    }
  };
  try {
    make(ema{adam{}}).fit(data, epochs(4), verbosity::off, backup_and_restore{folder.path / "backup"}, cut{}, average_weights{});
  } catch (const power_cut&) {
  }
  auto resumed = make(ema{adam{}});
  resumed.fit(data, epochs(4), verbosity::off, backup_and_restore{folder.path / "backup"}, average_weights{});
  CHECK(weights_of(resumed) == expected);
}

TEST_CASE("settings, and averages that do not exist") {
  CHECK(std::string(ema<adam>::name) == "ema_adam");
  const ema optimizer{sgd{.learning_rate = 0.5, .momentum = 0.25, .clipvalue = 2}, 0.875};
  CHECK(optimizer.slots() == 2);
  CHECK(optimizer.clipvalue == 2);
  CHECK(optimizer.learning_rate(0) == 0.5);
  CHECK(optimizer.settings().back().value == 0.875);
  CHECK(error_of([] { make(ema{adam{}, 1.0}); }) == "ema_adam: momentum = 1 must be at least 0 and below 1");
  CHECK(error_of([] { make(ema{adam{.beta_1 = 2}}); }) == "adam: beta_1 = 2 must be at least 0 and below 1");
  auto model = make(ema{adam{}});
  CHECK(error_of([&] { take_averages(model); }) == "take_averages: there is no average before the first update");
  CHECK(error_of([] { make(adam{}).fit(batches(), verbosity::off, average_weights{}); }) ==
        "take_averages: the optimizer keeps no averages in this process: write ema{adam{}}, without parameter servers");
}
