// Gradients that a hook requests: those of the last update, of the whole batch.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <strata/communicators/in_process.hpp>
#include <strata/distribute/mirrored.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/strata.hpp>
#include <strata/train/fitted_model.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gradient_check.hpp"

using namespace strata;
using namespace strata::test;

namespace {

using net = sequential<input<6, 6, 1>, conv2d<4, 3, relu>, flatten, dense<5, tanh_activation>, dense<3, softmax>>;
constexpr int count = 44;  // the last batch is short
const std::vector<float> x = random_numbers<float>(count * 36, 5);
const std::vector<int> y = [] {
  std::vector<int> labels;
  for (int i = 0; i < count; ++i) labels.push_back(i * i % 3);
  return labels;
}();

std::vector<float> values_of(const std::vector<named_array>& arrays, std::vector<std::string>* names = nullptr) {
  std::vector<float> out;
  for (const named_array& a : arrays) {
    const std::size_t before = out.size();
    out.resize(before + a.bytes.size() / sizeof(float));
    std::memcpy(out.data() + before, a.bytes.data(), a.bytes.size());
    if (names) names->push_back(a.name);
  }
  return out;
}

/// Stores the weights before and after an update, and its gradients, in the second epoch.
struct keeps {
  std::vector<float>&before, &after, &gradients;
  std::vector<std::string>& names;

  void on_epoch_begin(training_state& s, fitted_model& model) { model.keep_gradients(s.epoch == 1); }
  void on_batch_begin(training_state& s, fitted_model& model) {
    if (s.epoch == 1) before = values_of(model.weights());
  }
  void on_epoch_end(training_state& s, fitted_model& model) {
    if (s.epoch != 1) {
      CHECK(model.gradients().empty());
      return;
    }
    after = values_of(model.weights());
    names.clear();
    gradients = values_of(model.gradients(), &names);
  }
};

struct outcome {
  std::vector<float> before{}, after{}, gradients{}, weights{};
  std::vector<std::string> names{};
};

template <class Optimizer, class... Strategy>
outcome train(const Optimizer& optimizer, const Strategy&... strategy) {
  outcome out;
  trainer model{net{}, optimizer, sparse_categorical_crossentropy{}, strategy...};
  model.fit(x, y, epochs(3), batch_size(16), verbose::off, keeps{out.before, out.after, out.gradients, out.names});
  out.weights.assign(model.parameters().begin(), model.parameters().end());
  return out;
}

}  // namespace

TEST_CASE("a hook sees the mean gradient of the last update, by the names of the weights") {
  const double rate = 0.5;
  for (const int leaves : {1, 4}) {  // with one leaf, an update is made at once where no gradient is kept
    const one_device one{{.threads = 1, .leaves = leaves}};
    const outcome seen = train(sgd{.learning_rate = rate}, one);
    CHECK(seen.names == parameter_names_of<net>());
    REQUIRE(seen.gradients.size() == seen.before.size());
    double largest = 0;
    for (std::size_t i = 0; i < seen.gradients.size(); ++i) {
      CHECK(std::abs(double(seen.before[i]) - double(seen.after[i]) - rate * double(seen.gradients[i])) < 1e-6);
      largest = std::max(largest, std::abs(double(seen.gradients[i])));
    }
    CHECK(largest > 1e-3);
    trainer silent{net{}, sgd{.learning_rate = rate}, sparse_categorical_crossentropy{}, one};
    silent.fit(x, y, epochs(3), batch_size(16), verbose::off);
    CHECK(std::ranges::equal(silent.parameters(), seen.weights));
  }
}

TEST_CASE("it is the same with any number of threads and processes, and before clipping") {
  const outcome one = train(sgd{.learning_rate = 0.5, .global_clipnorm = 0.05}, one_device{{.threads = 1, .leaves = 4}});
  CHECK(train(sgd{.learning_rate = 0.5, .global_clipnorm = 0.05}, mirrored{cpus(3), {.leaves = 4}}).gradients == one.gradients);
  double moved = 0, all = 0;
  for (std::size_t i = 0; i < one.gradients.size(); ++i) {
    moved += std::pow(double(one.before[i]) - double(one.after[i]), 2);
    all += std::pow(double(one.gradients[i]), 2);
  }
  CHECK(std::abs(std::sqrt(moved) - 0.5 * 0.05) < 1e-6);
  CHECK(std::sqrt(all) > 0.06);

  std::vector<in_process> links = in_process::group(2);
  std::vector<outcome> outcomes(2);
  {
    std::vector<std::jthread> processes;
    for (std::size_t r = 0; r < 2; ++r)
      processes.emplace_back([&, r] {
        const synchronous_among strategy{std::move(links[r]), compute_options{.threads = 1, .leaves = 4}};
        outcomes[r] = train(sgd{.learning_rate = 0.5, .global_clipnorm = 0.05}, strategy);
      });
  }
  for (const outcome& each : outcomes) CHECK(each.gradients == one.gradients);
}
