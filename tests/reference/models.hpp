// Whole networks through the executor: one training step in every detail, ten steps of Adam and of SGD.
#pragma once
#include <memory>
#include <strata/cpu/engine/engine.hpp>
#include <strata/network/layer_names.hpp>
#include <strata/synchronous/synchronous.hpp>

#include "formula.hpp"
#include "some_optimizer.hpp"

namespace strata::test {
using namespace core;

/// A metric that measures nothing, but stores the predictions that a training step makes on this thread.
struct keep_predictions {
  static constexpr auto name = "keep_predictions";
  static inline thread_local std::vector<double> kept;

  template <class T, class Truth>
  static double measure(std::span<const T> prediction, const Truth&) {
    kept.insert(kept.end(), prediction.begin(), prediction.end());
    return 0;
  }
};

/// An executor with its type erased, so that the checks are compiled once for each precision.
template <class T>
struct any_executor {
  virtual ~any_executor() = default;
  virtual double train_step(samples<T>) = 0;  // returns the mean loss
  virtual void predict(samples<T>, T*) = 0;
  virtual std::span<T> parameters() = 0;
  virtual std::span<T> slots() = 0;
  virtual void parameters_changed() = 0;
};

template <class Program, class Backend>
class erased_executor final : public any_executor<typename Program::value_type> {
  using T = typename Program::value_type;
  synchronous_executor<Program, Backend> executor_;

 public:
  erased_executor(some_optimizer o, compute_options options, int batch) : executor_(std::move(o), 1, options) {
    executor_.prepare(batch, purpose::training);
    executor_.prepare(batch, purpose::inference);
  }
  double train_step(samples<T> batch) override { return executor_.train_step(batch)[0].mean(); }
  void predict(samples<T> batch, T* out) override { executor_.predict(batch, out); }
  std::span<T> parameters() override { return executor_.parameters(); }
  std::span<T> slots() override { return executor_.slots(); }
  void parameters_changed() override { executor_.parameters_changed(); }
};

/// A network with its types erased.
template <class T>
struct model_under_test {
  static constexpr int batch = 8;

  std::size_t input_size, classes;
  bool one_hot;
  std::span<const parameter_slot> slots;
  std::vector<std::string> names;  // of the slots, as the recordings have them
  std::unique_ptr<any_executor<T>> (*make)(some_optimizer, compute_options);
};

template <class Network, class Loss, class Precision, class Backend>
auto erased_model() {
  using T = typename Precision::value_type;
  using P = program<Network, Loss, some_optimizer, type_list<keep_predictions>, Precision>;
  model_under_test<T> m{std::size_t(Network::input_shape.size()),
                        std::size_t(Network::output_shape.size()),
                        Loss::labels == label_kind::dense,
                        strata::detail::slots_of<Network>(),
                        parameter_names_of<Network>(),
                        [](some_optimizer o, compute_options options) -> std::unique_ptr<any_executor<T>> {
                          return std::make_unique<erased_executor<P, Backend>>(std::move(o), options, model_under_test<T>::batch);
                        }};
  for (std::string& n : m.names)
    if (const auto at = n.find("batch_normalization"); at != n.npos)
      n.replace(at, std::string_view("batch_normalization").size(), "batch_norm");
  return m;
}

/// All comparisons are relative to the largest element of a tensor, 1e-5 in float and 1e-12 in double. Adam divides by |g| + 3e-6
/// in its first steps, so where a gradient nearly cancels, its rounding error is multiplied by up to 300; yet after ten steps the
/// largest error was 4.1e-6 in float (Keras: 2.8e-4) and 7e-15 in double, with and without -march=native.
template <class T>
class model_check {
  static constexpr std::size_t batch = std::size_t(model_under_test<T>::batch), batches = 11;
  static constexpr double tolerance = tolerance_of<T>;

  const model_under_test<T>& model_;
  recording& recorded_;
  compute_options options_;
  std::vector<T> inputs_, targets_;
  std::vector<std::int32_t> labels_;
  std::vector<std::vector<T>> weights_;

 public:
  model_check(const model_under_test<T>& model, recording& recorded, const std::string& name, compute_options options)
      : model_(model), recorded_(recorded), options_(options) {
    const nlohmann::json settings = recorded.settings(name);
    inputs_ = generated_inputs<T>(recorded, settings, batches * batch * model.input_size);
    labels_ = generated_labels(recorded, settings, batches * batch, std::uint32_t(model.classes));
    if (model.one_hot) {
      targets_.resize(labels_.size() * model.classes);
      for (std::size_t n = 0; n < labels_.size(); ++n) targets_[n * model.classes + std::size_t(labels_[n])] = 1;
    }
    REQUIRE(model.names.size() == settings.at("parameters").size());
    for (std::size_t s = 0; s < model.slots.size(); ++s)
      weights_.push_back(
          generated_parameter<T>(recorded, settings, model.names[s], std::size_t(model.slots[s].what.extents.size())));
  }

  void run() {
    one_step();
    ten_steps("adam", adam{});
    ten_steps("sgd", sgd{.learning_rate = 0.01, .momentum = 0.9});
  }

 private:
  samples<T> batch_number(std::size_t n) const {
    return {inputs_.data() + n * batch * model_.input_size,
            {model_.one_hot ? nullptr : labels_.data() + n * batch,
             model_.one_hot ? targets_.data() + n * batch * model_.classes : nullptr},
            int(batch)};
  }

  std::unique_ptr<any_executor<T>> start(const some_optimizer& optimizer) {
    auto executor = model_.make(optimizer, options_);
    for (std::size_t s = 0; s < model_.slots.size(); ++s)
      std::ranges::copy(weights_[s], executor->parameters().begin() + model_.slots[s].offset);
    executor->parameters_changed();
    return executor;
  }
  std::span<const T> parameter_in(std::span<const T> arena, std::size_t s) const {
    return arena.subspan(std::size_t(model_.slots[s].offset), std::size_t(model_.slots[s].what.extents.size()));
  }
  bool trained(std::size_t s) const { return model_.slots[s].what.trainable; }

  /// Of a large tensor every 23rd element is recorded, and two sums over all.
  void compare_parameter(const std::string& name, std::span<const T> got) {
    if (recorded_.has(name)) return compare<T>(name, got, recorded_.tensor(name), tolerance);
    std::vector<T> some;
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (i % 23 == 0) some.push_back(got[i]);
      sum += double(got[i]), squares += double(got[i]) * double(got[i]);
    }
    compare<T>(name, some, recorded_.tensor(name + "/every_23rd"), tolerance);
    const double expected_squares = recorded_.number(name + "/sum_of_squares");
    INFO(name);
    CHECK(std::abs(squares - expected_squares) <= tolerance * expected_squares);
    CHECK(std::abs(sum - recorded_.number(name + "/sum")) <= tolerance * std::sqrt(double(got.size()) * expected_squares));
  }

  void compare_predictions(const std::string& name, any_executor<T>& executor) {
    std::vector<T> out(batch * model_.classes);
    executor.predict(batch_number(0), out.data());
    compare<T>(name, out, recorded_.tensor(name), tolerance);
  }

  void one_step() {
    const auto executor = start(keep_gradient{});
    // Without state, inference computes what training does.
    compare_predictions(recorded_.has("inference") ? "inference" : "predictions", *executor);
    keep_predictions::kept.clear();
    const double loss[] = {executor->train_step(batch_number(0))};
    compare<double>("loss", loss, recorded_.tensor("loss"), tolerance);
    if (options_.threads == 1) compare<double>("predictions", keep_predictions::kept, recorded_.tensor("predictions"), tolerance);
    for (std::size_t s = 0; s < model_.slots.size(); ++s) {
      if (trained(s))
        compare_parameter("gradient/" + model_.names[s], parameter_in(executor->slots(), s));
      else
        compare_parameter("moving/" + model_.names[s], parameter_in(executor->parameters(), s));
    }
  }

  void ten_steps(const std::string& name, const some_optimizer& optimizer) {
    const auto executor = start(optimizer);
    std::vector<double> losses;
    for (std::size_t n = 1; n < batches; ++n) losses.push_back(executor->train_step(batch_number(n)));
    compare<double>(name + "/losses", losses, recorded_.tensor(name + "/losses"), tolerance);
    for (std::size_t s = 0; s < model_.slots.size(); ++s)
      compare_parameter(name + '/' + model_.names[s], parameter_in(executor->parameters(), s));
    if (recorded_.has(name + "/inference")) compare_predictions(name + "/inference", *executor);
  }
};

/// Checks a model on one thread with one leaf, and on two threads with two.
template <class Network, class Loss, class Precision, class Backend>
void check_model_in(recording& recorded, const std::string& name) {
  using T = typename Precision::value_type;
  const auto model = erased_model<Network, Loss, Precision, Backend>();
  for (const int threads : {1, 2}) {
    INFO(name << " on " << Backend::name << ", " << sizeof(T) << " bytes, " << threads << " threads");
    model_check<T>(model, recorded, name, {.threads = threads, .leaves = threads}).run();
  }
}

template <class Network, class Loss>
void check_model(const std::string& name) {
  recording recorded("model_" + name);
  check_model_in<Network, Loss, precision::f64, reference>(recorded, name);
  check_model_in<Network, Loss, precision::f64, cpu>(recorded, name);
  check_model_in<Network, Loss, precision::f32, cpu>(recorded, name);
  CHECK(recorded.forgotten() == "");
}

}  // namespace strata::test
