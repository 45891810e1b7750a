// The other half of test_xla_training.py: trains networks on a PJRT plugin and on this machine's cores, and prints how far they
// are from each other.
#include <cstdlib>
#include <filesystem>
#include <strata/callbacks/early_stopping.hpp>
#include <strata/optimizers/ema.hpp>
#include <strata/strata.hpp>
#include <strata/train/backup_and_restore.hpp>
#include <strata/train/weights_file.hpp>
#include <strata/xla/xla.hpp>

#include "xla_training.hpp"

using namespace strata;
using namespace strata::core;
using xla_training::outcome;
using xla_training::tell;
using xla_training::trained;

namespace {

using mlp = sequential<input<28, 28, 1>, flatten, dense<32, relu>, dense<16, elu<>>, dense<10, softmax>>;
using cnn = sequential<input<28, 28, 1>, conv2d<4, 3, relu>, max_pool2d<>, conv2d<8, 3, relu>, flatten, dense<10, softmax>>;
using regularized = sequential<input<28, 28, 1>, flatten, dense<32, relu, kernel_regularizer<l2<0.01_r>>>, dense<10, softmax>>;
using several = sequential<input<28, 28, 1>, conv2d<4, 3, stride<2>, same_padding, no_bias>, batch_norm<>, activation<relu>,
                           residual<conv2d<4, 3, same_padding, no_bias>, batch_norm<>>, dropout<0.3_r>, average_pool2d<2>,
                           layer_norm<>, global_average_pool2d, dense<10, softmax>>;

template <class Network>
void compare(const char* what, const auto& data, const auto& optimizer, std::initializer_list<int> replicas) {
  constexpr int steps = 100;
  const outcome native = trained<Network>(data, optimizer, one_device{}, steps);
  for (int r : replicas) tell(what, r, trained<Network>(data, optimizer, xla{.replicas = r}, steps), native);
}

/// A strategy whose modules compute the steps of an execution in a loop, even where that is slower.
struct looping {
  static constexpr auto name = "looping";
  int replicas = 1;

  template <class Program>
  using executor = xla::executor<Program>;
  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    module_devices on = choose_devices(pjrt::find_plugin(), {}, replicas, {});
    on.traits.loops = true;
    return {std::move(optimizer), seed, std::move(on)};
  }
};

/// Trains two epochs of seven steps, the last one short, in executions of `steps` steps.
template <class Network>
outcome in_executions(const auto& strategy, int steps) {
  trainer model{Network{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(7)};
  const training_history past = model.fit(data::synthetic_digits(200, 1) | data::shuffle(200) | data::batch<32>, epochs(2),
                                          verbosity::off, steps_per_execution(steps));
  outcome out{past["loss"], {model.parameters().begin(), model.parameters().end()}};
  out.losses.push_back(past["accuracy"].back());
  return out;
}

/// Trains three steps with all layers, three with the first one frozen, three with all again; evaluates a batch after each.
template <class Network>
outcome with_frozen_layers(const auto& data, const auto& strategy) {
  trainer model{Network{}, adam{}, sparse_categorical_crossentropy{}, strategy, seed(7)};
  outcome out;
  for (int i = 0; i < 9; ++i) {
    if (i % 3 == 0) model.set_trainable("dense", i != 3);
    const auto batch = data.rows(32 * (i % 7), 32, ends_of_program<typename decltype(model)::program_type>);
    out.losses.push_back(model.train_step(batch)[0].mean());
    out.losses.push_back(model.executor().evaluate_step(batch)[0].mean());
  }
  out.weights.assign(model.parameters().begin(), model.parameters().end());
  return out;
}

struct crash {};
struct crash_at {
  long step;
  void on_batch_end(training_state& s) {
    if (s.step == step) throw crash{};
  }
};

/// Trains four epochs of seven steps: one strategy the first ten steps, another one the rest, with the state of callbacks and
/// optimizer: the best weights, averages, and a learning rate that falls with the step.
template <class First, class Second>
outcome with_snapshot(const std::filesystem::path& folder, const auto& optimizer, const First& first, const Second& second) {
  const auto fit = [&](const auto& strategy, auto&&... callback) {
    trainer model{mlp{}, optimizer, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(7)};
    const training_history past =
        model.fit(data::synthetic_digits(200, 1) | data::shuffle(200) | data::batch<32>, epochs(4), verbosity::off, callback...,
                  early_stopping{.monitor = "loss", .min_delta = 0.05, .patience = 1, .restore_best_weights = true},
                  backup_and_restore{folder, {.save_every_batches = 1}});
    outcome out{past["loss"], {model.parameters().begin(), model.parameters().end()}};
    out.losses.insert(out.losses.end(), {double(model.executor().step()), model.learning_rate()});
    return out;
  };
  try {
    fit(first, crash_at{10});
  } catch (const crash&) {
  }
  return fit(second);
}
void compare_snapshots(const char* to_xla, const char* from_xla, const std::filesystem::path& folder, const auto& optimizer) {
  const outcome native = with_snapshot(folder / "snapshot", optimizer, one_device{}, one_device{});
  tell(to_xla, 2, with_snapshot(folder / "snapshot", optimizer, one_device{}, xla{.replicas = 2}), native);
  tell(from_xla, 1, with_snapshot(folder / "snapshot", optimizer, xla{}, one_device{}), native);
}

}  // namespace

int main(int, char** arguments) {
  const std::filesystem::path folder = arguments[1];
  std::vector<float> x;
  std::vector<std::int32_t> y;
  for (const samples<float>& b : data::synthetic_digits(224, 1) | data::batch<32>) {
    x.insert(x.end(), b.x(), b.x() + b.count * 784);
    y.insert(y.end(), b.labels(), b.labels() + b.count);
  }
  const samples<float> data(x.data(), y.data(), 224);
  compare<mlp>("mlp", data, adam{}, {1, 2, 4, 8});
  compare<mlp>("mlp-sgd", data, sgd{.learning_rate = 0.05, .momentum = 0.9, .weight_decay = 1e-4, .global_clipnorm = 1}, {3});
  compare<cnn>("cnn", data, adam{}, {1, 2, 4, 8});
  compare<several>("several", data, sgd{.learning_rate = 0.002}, {1, 3});

  tell("executions", 2, in_executions<several>(xla{.replicas = 2}, 3), in_executions<several>(one_device{}, 1));
  tell("loops", 1, in_executions<several>(looping{1}, 3), in_executions<several>(xla{}, 1));
  tell("loops", 2, in_executions<mlp>(looping{2}, 3), in_executions<mlp>(xla{.replicas = 2}, 1));

  tell("frozen-layers", 2, with_frozen_layers<regularized>(data, xla{.replicas = 2}),
       with_frozen_layers<regularized>(data, one_device{}));

  const auto gradient = [&](const auto& strategy) {
    trainer model{several{}, sgd{}, sparse_categorical_crossentropy{}, strategy, seed(7)};
    model.executor().keep_gradient(true);
    const double loss = model.train_step(data.rows(0, 31, ends_of_program<typename decltype(model)::program_type>))[0].mean();
    return outcome{{loss}, {model.executor().gradient().begin(), model.executor().gradient().end()}};
  };
  tell("gradient", 2, gradient(xla{.replicas = 2}), gradient(one_device{}));

  compare_snapshots("snapshot-to-xla", "snapshot-from-xla", folder, adam{});
  compare_snapshots("averages-to-xla", "averages-from-xla", folder,
                    ema{sgd{.learning_rate = exponential_decay{0.05, 10, 0.5}, .momentum = 0.9}, 0.9});

  trainer model{cnn{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, xla{.replicas = 2}};
  model.fit(x, y, batch_size(32), verbosity::off);
  model.save_weights(folder / "weights.safetensors");
  trainer same{cnn{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}};
  same.load_weights(folder / "weights.safetensors");
  const logs here = model.evaluate(x, y, batch_size(100)), there = same.evaluate(x, y, batch_size(100));
  const auto predicted = model.predict(x), expected = same.predict(x);
  tell("weights-file", 2, {{here["loss"], here["accuracy"]}, {predicted.values.begin(), predicted.values.end()}},
       {{there["loss"], there["accuracy"]}, {expected.values.begin(), expected.values.end()}});
}
