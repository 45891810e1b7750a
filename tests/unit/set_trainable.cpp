// Layers that are frozen at run time: the training has the bits of one whose type freezes them.
#include <doctest/doctest.h>

#include <algorithm>
#include <strata/communicators/in_process.hpp>
#include <strata/distribute/mirrored.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/kernel/kernel_observer.hpp>
#include <strata/optimizers/lamb.hpp>
#include <strata/strata.hpp>
#include <strata/train/transfer_weights.hpp>
#include <string>
#include <thread>
#include <vector>

#include "error_of.hpp"
#include "gradient_check.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {

using crossentropy = sparse_categorical_crossentropy<>;
using regularized = kernel_regularizer<l2<0.1_r>>;
using convolution = conv2d<6, 3, relu, regularized>;
using inner = residual<conv2d<6, 3, same_padding>, layer_norm<>>;
using features = dense<9, tanh_activation>;

using whole = sequential<input<8, 8, 3>, convolution, max_pool2d<2>, inner, flatten, features, dense<4, relu, regularized>,
                         dense<3, softmax>>;
/// The network with its lower layers frozen, with those in the middle, and with the last one.
using lower_frozen = sequential<input<8, 8, 3>, frozen<convolution, max_pool2d<2>, inner, flatten, features>,
                                dense<4, relu, regularized>, dense<3, softmax>>;
using middle_frozen = sequential<input<8, 8, 3>, convolution, max_pool2d<2>, frozen<inner>, flatten, frozen<features>,
                                 dense<4, relu, regularized>, dense<3, softmax>>;
using last_frozen = sequential<input<8, 8, 3>, convolution, max_pool2d<2>, inner, flatten, features, dense<4, relu, regularized>,
                               frozen<dense<3, softmax>>>;
const std::vector<std::string> lower{"conv2d", "conv2d_1", "layer_normalization", "dense"};
const std::vector<std::string> middle{"conv2d_1", "layer_normalization", "dense"};
const std::vector<std::string> last{"dense_2"};

constexpr int count = 40;
const std::vector<float> x = random_numbers<float>(count * 192, 5);
const std::vector<int> y = [] {
  std::vector<int> labels;
  for (int i = 0; i < count; ++i) labels.push_back(i * i % 3);
  return labels;
}();

template <class Network, class Optimizer = adamw, class... Extra>
auto make(const Optimizer& optimizer = {.learning_rate = 0.01}, const Extra&... extra) {
  return trainer{Network{}, optimizer, crossentropy{}, accuracy{}, extra...};
}
void freeze(auto& model, const std::vector<std::string>& layers, bool on = true) {
  for (const std::string& name : layers) model.set_trainable(name, !on);
}
training_history fit(auto& model, int for_epochs = 2) {
  return model.fit(x, y, epochs(for_epochs), batch_size(16), verbose::off);
}

/// Each parameter of a network, in the order of the tape.
template <class Network>
std::vector<std::vector<float>> parameters_of(const auto& model) {
  std::vector<std::vector<float>> out;
  for (const parameter_slot& s : strata::detail::slots_of<Network>()) {
    const auto values = model.parameters().subspan(std::size_t(s.offset), std::size_t(s.what.extents.size()));
    out.emplace_back(values.begin(), values.end());
  }
  return out;
}

template <class Frozen, class Optimizer, class... Extra>
void check_against_type(const std::vector<std::string>& layers, const Optimizer& optimizer, const Extra&... extra) {
  CAPTURE(Optimizer::name);
  CAPTURE(layers.size());
  auto by_type = make<Frozen>(optimizer, extra...);
  auto by_name = make<whole>(optimizer, extra...);
  REQUIRE(transfer_weights(by_type, by_name).skipped.empty());
  freeze(by_name, layers);
  const training_history expected = fit(by_type), past = fit(by_name);
  CHECK(past["loss"] == expected["loss"]);
  CHECK(past["accuracy"] == expected["accuracy"]);
  CHECK(parameters_of<whole>(by_name) == parameters_of<Frozen>(by_type));
  CHECK(by_name.evaluate(x, y)["loss"] == by_type.evaluate(x, y)["loss"]);
}

template <class Optimizer, class... Extra>
void check_all(const Optimizer& optimizer, const Extra&... extra) {
  check_against_type<lower_frozen>(lower, optimizer, extra...);
  check_against_type<middle_frozen>(middle, optimizer, extra...);
  check_against_type<last_frozen>(last, optimizer, extra...);
}

}  // namespace

TEST_CASE("layers frozen at run time: the bits of a network whose type freezes them") {
  const one_device few{{.threads = 1, .leaves = 2}};
  check_all(adamw{.learning_rate = 0.01, .weight_decay = 0.1, .global_clipnorm = 0.5}, few);
  check_all(sgd{.learning_rate = 0.1, .momentum = 0.9, .clipnorm = 0.3}, few);
  check_all(lamb{.learning_rate = 0.01}, few);
  // This executor updates each parameter as soon as its gradient is known, unless a layer is frozen at run time.
  check_all(adam{.learning_rate = 0.01}, one_device{{.threads = 1, .leaves = 1}});
}

TEST_CASE("layers frozen at run time: any number of threads and processes") {
  auto model = make<whole>(adamw{.learning_rate = 0.01}, one_device{{.threads = 1, .leaves = 4}});
  freeze(model, middle);
  const training_history past = fit(model);
  auto threads = make<whole>(adamw{.learning_rate = 0.01}, mirrored{cpus(3), {.leaves = 4}});
  freeze(threads, middle);
  CHECK(fit(threads)["loss"] == past["loss"]);
  CHECK(std::ranges::equal(threads.parameters(), model.parameters()));

  std::vector<std::vector<float>> weights(2);
  {
    std::vector<in_process> links = in_process::group(2);
    std::vector<std::jthread> processes;
    for (std::size_t r = 0; r < 2; ++r)
      processes.emplace_back([&, r] {
        // The buckets are small, so that some contain only frozen layers; these are completed, too.
        const synchronous_among strategy{std::move(links[r]), compute_options{.threads = 1, .leaves = 4},
                                         communication_options{.bytes_per_pack = 256}};
        auto one = make<whole>(adamw{.learning_rate = 0.01}, strategy);
        freeze(one, middle);
        fit(one);
        weights[r].assign(one.parameters().begin(), one.parameters().end());
      });
  }
  for (const std::vector<float>& each : weights) CHECK(std::ranges::equal(each, model.parameters()));
}

TEST_CASE("a layer is frozen and trained again between two fits") {
  auto model = make<whole>();
  CHECK(model.is_trainable("conv2d"));
  CHECK_FALSE(model.is_trainable("flatten"));
  const auto start = parameters_of<whole>(model);
  freeze(model, lower);
  CHECK_FALSE(model.is_trainable("conv2d"));
  CHECK(summary(model).find(" Trainable params: 55 (220.00 B)\n Non-trainable params: 1,005 (3.93 KB)\n") != std::string::npos);
  fit(model, 1);
  auto tuned = parameters_of<whole>(model);
  for (std::size_t s = 0; s < tuned.size(); ++s) {
    CAPTURE(s);
    CHECK((tuned[s] == start[s]) == (s < tuned.size() - 4));
  }
  freeze(model, lower, false);
  CHECK(model.is_trainable("conv2d"));
  fit(model, 1);
  const auto end = parameters_of<whole>(model);
  for (std::size_t s = 0; s < end.size(); ++s) CHECK(end[s] != tuned[s]);
}

TEST_CASE("no gradient is computed below the first layer that trains, and none of weights that are frozen") {
  struct counting final : kernel_observer {
    std::vector<int> backward = std::vector<int>(9);  // calls of each group
    void begins(const observed_call& call) override {
      if (call.direction == pass_direction::backward) ++backward[std::size_t(call.group)];
    }
    void ended(const observed_call&, const observed_numbers& n) override {
      for (const void* each : n.parameter_gradient) weight_gradients += each != nullptr;
    }
    int weight_gradients = 0;
    bool reads_gradients() const override { return false; }
  };
  const auto calls = [](const std::vector<std::string>& frozen, int& gradients) {
    counting seen;
    auto model = make<whole>(adamw{}, one_device{{.threads = 1, .leaves = 1}});
    freeze(model, frozen);
    model.executor().observe(&seen);
    model.train_step({x.data(), y.data(), 8});
    gradients = seen.weight_gradients;
    return std::ranges::count(seen.backward, 1);
  };
  int all = 0, upper = 0, none = 0;
  const auto of_all = calls({}, all), of_upper = calls(lower, upper);
  CHECK(of_upper == 2);  // the last two dense layers
  CHECK(of_all > of_upper);
  CHECK(upper == 2 * 2 * 2);  // kernel and bias, forward and backward
  CHECK(all > upper);
  CHECK(calls(layer_names_of<whole>(), none) == 0);
  CHECK(none == 0);
}

TEST_CASE("with everything frozen, nothing changes") {
  auto model = make<whole>(adamw{.learning_rate = 0.01, .weight_decay = 0.1});
  const auto start = parameters_of<whole>(model);
  freeze(model, layer_names_of<whole>());
  CHECK(summary(model).find(" Trainable params: 0 ") != std::string::npos);
  const training_history past = fit(model);
  CHECK(past["loss"][0] == past["loss"][1]);
  CHECK(parameters_of<whole>(model) == start);
}

TEST_CASE("layers that cannot be frozen or trained by name, and names that there are not") {
  using normalized =
      sequential<input<8, 8, 3>, conv2d<4, 3>, batch_norm<>, flatten, frozen<dense<6>>, dropout<0.1_r>, dense<3, softmax>>;
  auto model = make<normalized>();
  CHECK(error_of([&] { model.set_trainable("conv2", false); }) ==
        "set_trainable: there is no layer 'conv2'; the layers are input_layer, conv2d, batch_normalization, flatten, dense, "
        "dropout, dense_1");
  CHECK(error_of([&] {
          (void)model.is_trainable("conv2");
        }).starts_with("is_trainable: there is no layer 'conv2'; the layers are input_layer"));
  CHECK(error_of([&] { model.set_trainable("batch_normalization", false); }) ==
        "set_trainable: 'batch_normalization' computes with statistics of the batch while it trains, and with its "
        "moving statistics when it is frozen: write frozen<...> around it");
  model.set_trainable("batch_normalization", true);
  CHECK(error_of([&] { model.set_trainable("dense", true); }) ==
        "set_trainable: 'dense' is in frozen<...>, whose weights no program can train");
  model.set_trainable("dense", false);
  model.set_trainable("dropout", false);
  CHECK_FALSE(model.is_trainable("dense"));

  // A batch_norm above a frozen layer, in segments of their own.
  const auto start = parameters_of<normalized>(model);
  model.set_trainable("conv2d", false);
  fit(model);
  const auto end = parameters_of<normalized>(model);
  for (std::size_t s = 0; s < end.size(); ++s) {
    CAPTURE(s);
    const int layer = tape_of<normalized::items>.nodes[layout_of<normalized::items>.slots[s].node].layer_number;
    CHECK((end[s] == start[s]) == (layer == 1 || layer == 4));
  }
}

TEST_CASE("processes that have frozen other layers do not train together") {
  std::vector<in_process> links = in_process::group(2);
  std::vector<std::string> said(2);
  {
    std::vector<std::jthread> processes;
    for (std::size_t r = 0; r < 2; ++r)
      processes.emplace_back([&, r] {
        const synchronous_among strategy{std::move(links[r]), compute_options{.threads = 1}};
        auto one = make<whole>(adamw{}, strategy);
        if (r == 1) one.set_trainable("conv2d", false);
        said[r] = error_of([&] { fit(one); });
      });
  }
  for (const std::string& why : said) {
    CAPTURE(why);
    CHECK(why.find(
              "fit: process 1 does not train as process 0 does: other samples, another order or other frozen layers, here '") !=
          std::string::npos);
  }
  CHECK(said[1].find(", frozen {conv2d}'") != std::string::npos);
}
