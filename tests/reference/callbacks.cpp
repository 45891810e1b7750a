// What callbacks decide at the end of each epoch, against Keras' own.
#include <cmath>
#include <cstring>
#include <strata/callbacks/early_stopping.hpp>
#include <strata/callbacks/reduce_lr_on_plateau.hpp>
#include <strata/optimizers/learning_rate.hpp>

#include "recorded.hpp"

using namespace strata;
using namespace strata::core;

namespace {

/// A model whose only weight is the number of the epoch.
struct epoch_as_weights final : fitted_model {
  float epoch = -1;

  std::vector<named_array> weights() override { return {{"epoch", {}, std::as_writable_bytes(std::span(&epoch, 1))}}; }
  std::size_t element_size() const override { return sizeof(float); }
  void weights_changed() override {}
  any_process_group& group() override { throw strata_error("only what is printed asks for it"); }
  model_view view() override { throw strata_error("only what saves asks for it"); }
  void observe(kernel_observer&) override {}
  void keep_gradients(bool) override {}
  std::vector<named_array> gradients() override { return {}; }
  std::vector<listed_kernel> kernels() const override { return {}; }
  time_split time() const override { return {}; }
};

struct outcome {
  int last = 0;
  float weights = 0;
  std::vector<double> rates{};
};

/// Runs a callback. Before the epoch `interruption`, another callback replaces it, with its state and its arrays.
template <class C>
outcome run(const C& made, const std::string& monitor, const std::vector<double>& values, int interruption) {
  epoch_as_weights model;
  training_state s{.epochs = int(values.size()), .learning_rate = 0.5};
  C c = made;
  const auto begin = [&] {
    if constexpr (requires { c.on_train_begin(s); }) c.on_train_begin(s);
  };
  begin();
  outcome out;
  for (; s.epoch < s.epochs && !s.stop_training; ++s.epoch) {
    if (s.epoch == interruption) {
      C other = made;
      other.set_state(c.state());
      if constexpr (requires { c.arrays(model); }) {
        const auto from = c.arrays(model), to = other.arrays(model);
        for (std::size_t i = 0; i < from.size(); ++i) std::ranges::copy(from[i].bytes, to[i].bytes.begin());
      }
      c = other;
      s.resumed = true;
      begin();
    }
    model.epoch = float(s.epoch);
    out.rates.push_back(s.learning_rate);
    s.values = {{"loss", 1}, {monitor, values[std::size_t(s.epoch)]}};
    c.on_epoch_end(s, model);
    out.last = s.epoch;
    if (s.new_learning_rate) s.learning_rate = *std::exchange(s.new_learning_rate, std::nullopt);
  }
  if constexpr (requires { c.on_train_end(s, model); }) c.on_train_end(s, model);
  out.weights = model.epoch;
  return out;
}

monitor_mode mode_of(const std::string& name) {
  return name == "max" ? monitor_mode::max : name == "min" ? monitor_mode::min : monitor_mode::automatic;
}

}  // namespace

TEST_CASE("early_stopping and reduce_lr_on_plateau decide as in Keras, also after an interruption") {
  test::recording recorded("callbacks");
  int cases = 0;
  for (; recorded.has(std::to_string(cases) + "/values"); ++cases) {
    const std::string name = std::to_string(cases);
    const auto s = recorded.settings(name);
    INFO(s.dump());
    const std::string monitor = s.at("monitor");
    const std::vector<double> values = recorded.tensor(name + "/values");
    for (const int interruption : {-1, 4, 11}) {
      if (s.at("callback") == "early_stopping") {
        const early_stopping c{.monitor = monitor,
                               .min_delta = s.at("min_delta"),
                               .patience = s.at("patience"),
                               .mode = mode_of(s.at("mode")),
                               .baseline = s.at("baseline").is_null() ? std::nullopt : std::optional<double>(s.at("baseline")),
                               .restore_best_weights = s.at("restore_best_weights"),
                               .start_from_epoch = s.at("start_from_epoch")};
        const outcome o = run(c, monitor, values, interruption);
        CHECK(std::vector<std::int32_t>{o.last, int(o.weights)} == recorded.integers(name + "/last"));
      } else {
        const reduce_lr_on_plateau c{.monitor = monitor,
                                     .factor = s.at("factor"),
                                     .patience = s.at("patience"),
                                     .mode = mode_of(s.at("mode")),
                                     .min_delta = s.at("min_delta"),
                                     .cooldown = s.at("cooldown"),
                                     .min_lr = s.at("min_lr")};
        CHECK(run(c, monitor, values, interruption).rates == recorded.tensor(name + "/rates"));
      }
    }
  }
  CHECK(cases == 120);
  CHECK(recorded.forgotten() == "");
}
