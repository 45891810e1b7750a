// Several inputs and outputs, weights of samples, batches that grow and shrink, leaves without samples, in double precision.
// needs: emulated_cuda
// flags: -O0
#include "compare.hpp"

#include <cstdint>
#include <strata/callbacks/lambda_callback.hpp>
#include <strata/cuda/cuda.hpp>
#include <strata/strata.hpp>
#include <vector>

#include "unit/two_by_two.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
using two = program_of_two<true, adam, precision::f64>;

/// All results of a few steps, an evaluation and a prediction, and the weights after them.
template <class Backend>
std::vector<double> trained(typename engine_options<Backend>::type options) {
  synchronous_executor<two, Backend> executor(adam{.learning_rate = 0.01}, 5, options);
  constexpr int count = 21;
  const std::vector<double> x = numbers(1, count * 6), targets = numbers(2, count * 2);
  std::vector<double> words(count * 3), weights[2];
  std::vector<std::int32_t> labels(count);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = double(i * 5 % 7);
  for (int i = 0; i < count; ++i) {
    weights[0].push_back(i % 4), weights[1].push_back(0.5 * (i % 3));
    labels[std::size_t(i)] = i % 3;
  }
  samples<double> all;
  all.inputs[0] = x.data(), all.inputs[1] = words.data(), all.count = count;
  all.truths[0].labels = labels.data(), all.truths[1].targets = targets.data();
  std::vector<double> out;
  const auto keep = [&](const step_result<two>& result) {
    for (const auto& each : result.get()) out.push_back(each.sum), out.push_back(each.count);
  };
  samples<double> few = all;
  few.count = 5;
  executor.prepare(5, purpose::training);
  keep(executor.train_step(few));
  executor.prepare(count, purpose::training);
  all.truths[0].weights = weights[0].data(), all.truths[1].weights = weights[1].data();
  for (int step = 0; step < 4; ++step) keep(executor.train_step(all));
  all.truths[1].weights = nullptr;
  for (int step = 0; step < 2; ++step) keep(executor.train_step(all));  // both buffers for batches
  all.truths[0].weights = nullptr, all.truths[1].weights = weights[1].data();
  for (int step = 0; step < 2; ++step) keep(executor.train_step(all));
  all.truths[0].gradient_weights = weights[1].data();
  for (int step = 0; step < 3; ++step) keep(executor.train_step(all));
  all.truths[0].weights = weights[0].data(), all.truths[0].gradient_weights = nullptr;
  few.count = 2;
  keep(executor.train_step(few));
  executor.prepare(count, purpose::inference);
  keep(executor.evaluate_step(all));
  std::vector<double> predictions(count * 5);
  output_rows<double> rows;
  rows.at[0] = predictions.data(), rows.at[1] = predictions.data() + count * 3;
  executor.predict(all, rows);
  out.insert(out.end(), predictions.begin(), predictions.end());
  out.insert(out.end(), executor.parameters().begin(), executor.parameters().end());
  return out;
}
}  // namespace

TEST_CASE("two inputs, two outputs, weights: the numbers of the reference, and the same bits on any number of devices") {
  const std::vector<double> expected = trained<reference>({.threads = 1, .leaves = 8});
  std::vector<double> first;
  for (const int devices : {1, 2, 3, 8})
    for (const std::uint64_t order : {1u, 2u, 3u}) {
      have_devices(devices, order);
      cuda_options options{.devices = {}, .leaves = 8};
      for (int i = 0; i < devices; ++i) options.devices.push_back(i % machine::device_count());
      const std::vector<double> found = trained<cuda>(options);
      CHECK(difference(found, expected) < 1e-11);
      if (first.empty()) first = found;
      CHECK(found == first);
    }
}

namespace {
struct pixels : input<6> {};
struct trunk : node<pixels, dense<5, tanh_activation>> {};
struct place : node<trunk, dense<2>> {};
struct hint : node<trunk, dense<4>> {};  // only predicted
struct code : node<trunk, dense<4, softplus>> {};
struct kind : node<trunk, dense<3, softmax>> {};  // the last kernel computes forward and backward, unless it has a factor
}  // namespace

TEST_CASE("weights of losses that change in each step, 0 among them: the same numbers as on the host") {
  have_devices(1);
  constexpr std::size_t count = 40;
  std::vector<float> x(count * 6), places(count * 2);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(number(3, i));
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = float(number(4, i));
  std::vector<int> kinds(count);
  for (std::size_t i = 0; i < count; ++i) kinds[i] = int(i % 3);
  const auto trained = [&](const auto& strategy) {
    trainer model{graph<place, hint, code, kind>{},
                  adam{.learning_rate = 0.01},
                  compare<place>(mean_squared_error{}, loss_weight(0)),
                  compare<kind>(sparse_categorical_crossentropy{}, accuracy{}),
                  compare<code>(kl_of_normal{}, loss_weight(0.1)),
                  strategy,
                  seed(7)};
    const lambda_callback changes{.on_batch_begin = [&](training_state& s) {
      model.template set_loss_weight<place>(double(s.step % 3));
      model.template set_loss_weight<kind>(s.step % 2 ? 1 : 0.5);
    }};
    const auto past =
        model.fit(of<pixels>(x), of<place>(places), of<kind>(kinds), epochs(3), batch_size(8), verbosity::off, changes);
    std::vector<double> out;
    for (const char* name : {"loss", "place_loss", "kind_loss", "code_loss"})
      for (const double value : past[name]) out.push_back(value);
    out.insert(out.end(), model.parameters().begin(), model.parameters().end());
    const auto hints = std::get<1>(model.predict(of<pixels>(x)));
    out.insert(out.end(), hints.values.begin(), hints.values.end());
    return out;
  };
  CHECK(difference(trained(one_device{gpu(0)}), trained(one_device{})) < 1e-5);
}
