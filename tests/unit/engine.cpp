// A second engine, on a device whose memory the host cannot read, under the strategies that the CPU has.
// flags: -ffp-contract=off
#include <doctest/doctest.h>

#include <cstring>
#include <exception>
#include <strata/communicators/in_process.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/strata.hpp>
#include <string>
#include <thread>
#include <vector>

#include "toy_engine.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
using mlp = sequential<input<6>, dense<8, elu<>>, dropout<0.25_r>, dense<3, softmax>>;
using normalized = sequential<input<6, 6, 1>, conv2d<4, 3>, batch_norm<>, activation<relu>, flatten, dense<3, softmax>>;

static_assert(engine<cpu_engine<program<mlp, sparse_categorical_crossentropy<>, adam, type_list<accuracy>>, cpu>>);

struct outcome {
  std::vector<float> weights, slots, gradient, predictions;
  double loss = 0, val_accuracy = 0;

  bool operator==(const outcome& o) const {
    const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
    };
    return same(weights, o.weights) && same(slots, o.slots) && same(gradient, o.gradient) && same(predictions, o.predictions) &&
           loss == o.loss && val_accuracy == o.val_accuracy;
  }
};

/// Some steps with a short last batch, then evaluation and prediction. frozen: the name of a layer, or empty.
template <class Network>
outcome trained(const auto& strategy, const std::string& frozen = "") {
  constexpr std::size_t size = std::size_t(Network::input_shape.size()), count = 46;
  std::vector<float> x(count * size);
  std::vector<std::int32_t> labels(count);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(philox{3}.uniform(i) - 0.5);
  for (std::size_t i = 0; i < count; ++i) labels[i] = int(i % 3);
  trainer model{Network{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(7)};
  if (!frozen.empty()) model.set_trainable(frozen, false);
  model.executor().keep_gradient(true);
  outcome out;
  for (int epoch = 0; epoch < 3; ++epoch)
    for (std::size_t at = 0; at < count; at += 20)
      out.loss = model.train_step({x.data() + at * size, labels.data() + at, int(std::min<std::size_t>(20, count - at))})[0].sum;
  auto& executor = const_cast<std::remove_const_t<std::remove_reference_t<decltype(model.executor())>>&>(model.executor());
  executor.prepare(int(count), purpose::inference);
  out.val_accuracy = executor.evaluate_step({x.data(), labels.data(), int(count)})[1].mean();
  out.predictions.resize(count * 3);
  model.predict(x, out.predictions);
  const auto w = executor.parameters(), s = executor.slots();
  const auto g = executor.gradient();
  out.gradient.assign(g.begin(), g.end());
  out.weights.assign(w.begin(), w.end()), out.slots.assign(s.begin(), s.end());
  return out;
}

template <class Network>
void check_like_the_reference(const std::string& frozen = "") {
  const outcome expected = trained<Network>(one_device<reference>{{.threads = 1, .leaves = 4}}, frozen);
  CHECK(trained<Network>(one_device<toy>{{.leaves = 4}}, frozen) == expected);
  for (const int processes : {2, 3}) {
    std::vector<std::string> failures(std::size_t(processes), "");
    std::vector<outcome> outcomes(std::size_t(processes), outcome{});
    std::vector<std::thread> threads;
    for (in_process& member : in_process::group(processes))
      threads.emplace_back([&, member] {
        try {
          const synchronous_among<in_process, toy> strategy{member, {.leaves = 4}, {}};
          outcomes[std::size_t(member.rank())] = trained<Network>(strategy, frozen);
        } catch (const std::exception& e) {
          failures[std::size_t(member.rank())] = e.what();
        }
      });
    for (auto& t : threads) t.join();
    for (const auto& f : failures) CHECK(f == "");
    for (const outcome& o : outcomes) CHECK(o == expected);
  }
}
}  // namespace

TEST_CASE("an engine of another device: one device and several processes have the parameters of the reference, bit for bit") {
  check_like_the_reference<mlp>();
}

TEST_CASE("and with statistics of the whole batch") { check_like_the_reference<normalized>(); }

TEST_CASE("and with a layer that is frozen at run time") {
  check_like_the_reference<mlp>("dense");
  check_like_the_reference<mlp>("dense_1");
  check_like_the_reference<normalized>("conv2d");
}

TEST_CASE("parameters that the program sets reach the device") {
  trainer model{mlp{}, adam{}, sparse_categorical_crossentropy{}, one_device<toy>{}, seed(1)};
  const std::vector<float> x(12, 0.5f);
  std::vector<float> before(6), after(6);
  model.predict(x, before);
  std::vector<float> weights(model.parameters().begin(), model.parameters().end());
  for (float& w : weights) w *= 2;
  model.set_parameters(weights);
  model.predict(x, after);
  CHECK(before != after);
  CHECK(std::memcmp(model.parameters().data(), weights.data(), weights.size() * sizeof(float)) == 0);
}
