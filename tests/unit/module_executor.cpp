// The executor of a program whose step is a module, on the mock plugin: each step adds 1 to every weight.
// needs: mock_pjrt
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mock_pjrt.hpp>
#include <strata/strata.hpp>
#include <strata/xla/runtime/executor.hpp>
#include <strata/xla/tpu.hpp>

#include "error_of.hpp"
#include "scratch_folder.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;
using mock_pjrt::observed;
using stablehlo::element;
namespace hlo = strata::stablehlo;

namespace {

using network = sequential<input<3>, dense<2, softmax>>;
std::vector<stablehlo::module_options> made;  // the modules that were made, in order

/// Modules of a program with this network, sgd with momentum, and accuracy, as far as the mock interprets them.
struct plain_modules {
  using optimizer = sgd;

  static stablehlo::module_text module(const stablehlo::module_options& o, bool trains, bool predicts) {
    made.push_back(o);
    stablehlo::module_text m;
    m.replicas = o.replicas;
    const std::int64_t rows = o.rows;
    for (int slots = 0; slots < (trains ? 2 : 1); ++slots)
      for (int i = 0; i < 2; ++i) {
        const stablehlo::argument a{
            .what = slots ? hlo::role::slot : hlo::role::parameter,
            .index = i,
            .type = {element::f32, i == 0 ? std::vector<std::int64_t>{3, 2} : std::vector<std::int64_t>{2}},
            .donated_to = trains ? int(m.results.size()) : -1};
        m.arguments.push_back(a);
        if (trains) m.results.push_back(a);
      }
    m.arguments.push_back({.what = hlo::role::input, .type = {element::f32, {rows, 3}}});
    if (!predicts) m.arguments.push_back({.what = hlo::role::truth, .type = {element::i32, {rows}}});
    if (o.has_weights) m.arguments.push_back({.what = hlo::role::sample_weight, .type = {element::f32, {rows}}});
    if (o.is_padded) {
      m.arguments.push_back({.what = hlo::role::row_count, .type = {element::i32, {}}});
      m.arguments.push_back({.what = hlo::role::batch_count, .type = {element::i32, {}}});
    }
    if (trains) m.arguments.push_back({.what = hlo::role::step_scalars, .type = {element::f32, {2}}});
    if (trains) m.arguments.push_back({.what = hlo::role::random_key, .type = {element::ui64, {}}});
    if (predicts)
      m.results.push_back({.what = hlo::role::prediction, .type = {element::f32, {rows, 2}}});
    else
      m.results.push_back({.what = hlo::role::sums, .type = {element::f32, {2, 2}}});
    for (int i = 0; i < 2 && o.keeps_gradient; ++i)
      m.results.push_back({.what = hlo::role::gradient, .index = i, .type = m.arguments[std::size_t(i)].type});

    for (std::vector<stablehlo::argument>* all : {&m.arguments, &m.results})
      for (stablehlo::argument& a : *all)
        if (o.steps > 1 && a.what != hlo::role::parameter && a.what != hlo::role::slot)
          a.type.extents.insert(a.type.extents.begin(), o.steps);

    m.text = "func.func public @main(";
    for (std::size_t i = 0; i < m.arguments.size(); ++i) {
      const stablehlo::argument& a = m.arguments[i];
      m.text += detail::text_of({i ? ", %" : "%", i, ": ", a.type.text()});
      if (a.donated_to >= 0) m.text += detail::text_of({" {tf.aliasing_output = ", a.donated_to, " : i32}"});
    }
    m.text += ") -> (";
    for (std::size_t i = 0; i < m.results.size(); ++i) m.text += (i ? ", " : "") + m.results[i].type.text();
    m.text += ") {}";
    return m;
  }
  static stablehlo::module_text training(const sgd&, const stablehlo::module_options& o) { return module(o, true, false); }
  static stablehlo::module_text evaluation(const stablehlo::module_options& o) { return module(o, false, false); }
  static stablehlo::module_text prediction(const stablehlo::module_options& o) { return module(o, false, true); }
  static std::vector<float> step_scalars(const sgd&, long step, double rate) { return {float(step), float(rate)}; }
};

struct mocked {
  static constexpr auto name = "mocked";
  int replicas = 1;
  bool loops = false;

  template <class Program>
  using executor = module_executor<Program, plain_modules>;
  template <class Program>
  executor<Program> make(typename Program::optimizer o, std::uint64_t seed) const {
    module_devices on = choose_devices(MOCK_PJRT, {}, replicas, {});
    on.traits.loops = loops;
    return {std::move(o), seed, std::move(on)};
  }
};

auto model_on(int replicas, bool loops = false) {
  observed() = {};
  made.clear();
  return trainer{network{}, sgd{.momentum = 0.9}, sparse_categorical_crossentropy{}, accuracy{}, mocked{replicas, loops}};
}

const std::vector<float> x(30, 1);
const std::vector<std::int32_t> y(10, 1);
samples<float> batch(int count) { return {x.data(), y.data(), count}; }

/// The last argument of this kind that replica 0 received; `back`: its position, counted from the end.
template <class V>
V last_argument(std::size_t back) {
  const auto& all = observed().last_arguments;
  V value;
  std::memcpy(&value, all[all.size() - 1 - back].data(), sizeof value);
  return value;
}

}  // namespace

TEST_CASE("weights and slots stay on the devices between steps, and are read and written when asked for") {
  {
    trainer model = model_on(2);
    auto& executor = model.executor();
    const std::vector<float> first(executor.parameters().begin(), executor.parameters().end());
    for (int i = 0; i < 3; ++i) model.train_step(batch(4));
    CHECK(made.size() == 1);
    CHECK(observed().calls["buffer_to_host_buffer"] == 3);  // sums only
    CHECK(executor.step() == 3);
    constexpr const auto& layout = layout_of<network::items>;
    for (const parameter_slot& p : std::span(layout.slots).first(2)) {
      CHECK(executor.parameters()[std::size_t(p.offset)] == first[std::size_t(p.offset)] + 3);
      CHECK(executor.slots()[std::size_t(p.offset)] == 3);
    }
    executor.parameters()[0] = 10;
    executor.slots()[0] = 20;
    executor.parameters_changed();
    const auto sums = model.train_step(batch(4));
    CHECK(executor.parameters()[0] == 11);
    CHECK(executor.slots()[0] == 21);
    model.reset_optimizer();
    CHECK(executor.step() == 0);
    model.train_step(batch(4));
    CHECK(executor.parameters()[0] == 12);
    CHECK(executor.slots()[0] == 1);
    CHECK(sums[0].sum == 0);
    CHECK(sums[1].count == 3);
  }
  CHECK(observed().all_alive() == 0);
  CHECK(observed().violations.empty());
}

TEST_CASE("the next batch is sent while a step runs, and sums are read when they are asked for") {
  {
    trainer model = model_on(2);
    auto& executor = model.executor();
    const std::vector<float> first(executor.parameters().begin(), executor.parameters().end());
    std::vector<float> own(12);
    model.train_step(batch(4));
    observed().order.clear();
    const std::size_t reads = std::size_t(observed().calls["buffer_to_host_buffer"]);
    std::vector<decltype(executor.train_step(batch(4)))> results;
    for (int i = 0; i < 4; ++i) {
      std::ranges::fill(own, float(i));
      results.push_back(executor.train_step({own.data(), y.data(), 4}));
      std::ranges::fill(own, -1.0f);  // the caller may reuse the memory of the batch
      CHECK(!results.back().is_ready());
    }
    // Steps 2 to 5: the arguments of 3 are sent while 2 runs, and so on; those of 4 when 2 has ended.
    std::vector<std::string> order = observed().order;
    order.erase(std::unique(order.begin(), order.end()), order.end());
    CHECK(order == std::vector<std::string>{"upload", "execute 2", "upload", "execute 3", "end 2", "upload", "execute 4", "end 3",
                                            "upload", "execute 5"});
    CHECK(executor.step() == 5);
    CHECK(std::size_t(observed().calls["buffer_to_host_buffer"]) == reads);
    for (const int which : {2, 0, 3, 0}) {
      const auto sums = results[std::size_t(which)].get();
      CHECK(sums[0].count == 1);  // of the mock: (0, 1), (2, 3)
      CHECK(sums[1].sum == 2);
      CHECK(std::size_t(observed().calls["buffer_to_host_buffer"]) == reads + 4);
    }
    CHECK(last_argument<std::array<float, 6>>(3) == std::array{3.0f, 3.0f, 3.0f, 3.0f, 3.0f, 3.0f});
    CHECK(executor.parameters()[0] == first[0] + 5);
  }
  CHECK(observed().all_alive() == 0);
  CHECK(observed().violations.empty());
}

TEST_CASE("of many steps whose results nobody reads, the last ones can be read") {
  trainer model = model_on(1);
  auto& executor = model.executor();
  const auto first = executor.train_step(batch(4));
  for (int i = 0; i < 1400; ++i) executor.train_step(batch(4));
  const auto last = executor.train_step(batch(4));
  CHECK(observed().alive["buffer"] <= 1300);
  CHECK(last.get()[0].count == 1);
  CHECK(error_of([&] { first.get(); }) ==
        "training step 1 of this executor was not computed, or too many steps have followed it");
  CHECK(executor.parameters()[std::size_t(layout_of<network::items>.slots[1].offset)] == 1402);
}

TEST_CASE("fit reads the results of a long epoch now and then") {
  trainer model = model_on(1);
  const std::vector<float> many(3 * 1'400);
  const std::vector<std::int32_t> labels(1'400);
  std::size_t most = 0;
  struct looks {
    std::size_t& most;
    void on_epoch_end(training_state&) { most = std::size_t(observed().calls["buffer_to_host_buffer"]); }
  } callback{most};
  model.fit(many, labels, batch_size(1), verbosity::off, callback);
  CHECK(most == 1'400);
  CHECK(observed().alive["buffer"] < 300);
}

TEST_CASE("fit waits for the devices at the end of an epoch, and where a callback looks at batches") {
  trainer model = model_on(1);
  const auto reads = [] { return std::exchange(observed().calls["buffer_to_host_buffer"], 0); };
  model.fit(x, y, batch_size(2), epochs(3), verbosity::off);
  CHECK(reads() == 3 * 5);
  CHECK(observed().order[0] == "upload");
  struct looks {
    std::vector<double> losses{};
    void on_batch_end(training_state& s) { losses.push_back(s.loss); }
  } callback;
  model.fit(x, y, batch_size(2), steps_per_execution(2), verbosity::off, callback);
  CHECK(callback.losses.size() == 3);
  CHECK(reads() == 5);
}

TEST_CASE("where that is faster, the steps of an execution are one call") {
  struct looks {
    std::vector<double> seen{};
    void on_batch_end(training_state& s) { seen.push_back(double(s.step)); }
  } callback;
  {
    trainer model = model_on(2, true);
    model.set_learning_rate(0.25);
    std::vector<float> many(3 * 4 * 11);
    for (std::size_t i = 0; i < many.size(); ++i) many[i] = float(i / 3);
    const std::vector<std::int32_t> labels(44);
    // Eleven batches of four: executions of four, four and three steps.
    const training_history past =
        model.fit(many, labels, batch_size(4), steps_per_execution(4), shuffle(false), verbosity::off, callback);
    CHECK(callback.seen == std::vector<double>{4, 8, 11});
    CHECK(observed().executions == 2 + 3);
    REQUIRE(made.size() == 2);
    CHECK(made[0].steps == 1);
    CHECK(made[1].steps == 4);
    // Of the mock: a step has the accuracy 2 / 3, one of a call of four (0, 1), (2, 3), ..., (14, 15).
    CHECK(past["accuracy"][0] == doctest::Approx((2 * (2 + 6 + 10 + 14) + 3 * 2) / (2 * (3 + 7 + 11 + 15) + 3 * 3.0)));
    CHECK(model.executor().step() == 11);
    model.executor().launch_together(3);
    for (int i = 0; i < 2; ++i) model.executor().train_step({many.data() + 12 * i, y.data(), 4});
    CHECK(observed().executions == 5);
    CHECK(model.executor().step() == 13);
    const auto third = model.executor().train_step({many.data() + 24, y.data(), 4});
    CHECK(observed().executions == 6);
    third.get();
    CHECK(last_argument<std::array<std::uint64_t, 3>>(0)[0] != last_argument<std::array<std::uint64_t, 3>>(0)[1]);
    CHECK(last_argument<std::array<float, 6>>(1) == std::array{11.0f, 0.25f, 12.0f, 0.25f, 13.0f, 0.25f});
    // The rows of replica 0: the first two of each batch.
    const auto rows = last_argument<std::array<float, 18>>(3);
    for (std::size_t i = 0; i < 18; ++i) CHECK(rows[i] == float(4 * (i / 6) + i % 6 / 3));
    // Reading state in the middle of an execution first completes the steps so far.
    model.executor().train_step(batch(4));
    CHECK(model.executor().slots()[0] == 2 + 3 + 1 + 1);  // of the mock: a call adds 1
    const auto& constant = model.executor();
    const float bias = constant.parameters()[std::size_t(layout_of<network::items>.slots[1].offset)];
    model.executor().train_step(batch(4));
    CHECK(constant.parameters()[std::size_t(layout_of<network::items>.slots[1].offset)] == bias + 1);
    // If an execution cannot begin, its steps are rolled back.
    model.executor().train_step(batch(4));
    const auto lost = model.executor().train_step(batch(4));
    observed().failing_function = "client_buffer_from_host_buffer";
    CHECK(contains(error_of([&] { lost.get(); }), "injected"));
    CHECK(contains(error_of([&] { lost.get(); }), "was not computed"));
    CHECK(model.executor().step() == 16);
    model.executor().train_step(batch(4));
    model.executor().train_step(batch(2));  // another module
    CHECK(model.executor().slots()[0] == 10);
    CHECK(model.executor().step() == 18);
  }
  CHECK(observed().all_alive() == 0);
  CHECK(observed().violations.empty());
  trainer model = model_on(1, false);
  model.fit(x, y, batch_size(2), steps_per_execution(5), verbosity::off);
  CHECK(observed().executions == 5);
}

TEST_CASE("a gradient is kept from the next step on, also where steps wait for each other") {
  {
    trainer model = model_on(2, true);
    auto& executor = model.executor();
    executor.launch_together(4);
    executor.train_step(batch(4));
    executor.keep_gradient(true);
    CHECK(executor.gradient()[5] == 0);
    executor.train_step(batch(4));
    CHECK(executor.gradient()[5] == 5);  // of the mock
    CHECK(observed().executions == 2);
    executor.keep_gradient(false);
    const auto last = executor.train_step(batch(4));
    CHECK(observed().executions == 2);
    CHECK(last.get()[0].count == 1);
    CHECK(observed().executions == 3);
  }
  CHECK(observed().all_alive() == 0);
  CHECK(observed().violations.empty());
}

TEST_CASE("an error of a step that the host did not wait for is thrown by the next call that waits") {
  trainer model = model_on(1);
  auto& executor = model.executor();
  executor.train_step(batch(4));
  observed().execution_fails = true;
  executor.train_step(batch(4));
  executor.train_step(batch(4));
  CHECK(contains(error_of([&] { executor.train_step(batch(4)); }),
                 "execute: the plugin libmock_pjrt.so reports (internal, code 13)"));
  CHECK(contains(error_of([&] { executor.parameters(); }), "the weights are lost"));
  CHECK(contains(error_of([&] { executor.train_step(batch(4)); }), "the weights are lost"));
  CHECK(observed().violations.empty());

  trainer again = model_on(1);
  observed().execution_fails = true;
  again.executor().train_step(batch(4));
  CHECK(contains(error_of([&] { again.executor().parameters(); }), "the device has failed"));
  trainer last = model_on(1);
  observed().execution_fails = true;
  const auto result = last.executor().train_step(batch(4));
  CHECK(contains(error_of([&] { result.get(); }), "the device has failed"));
}

TEST_CASE("an error of the steps that an exception left is thrown by the next call that needs them, once") {
  trainer model = model_on(1, true);
  auto& executor = model.executor();
  model.train_step(batch(4));
  executor.launch_together(4);
  for (int i = 0; i < 3; ++i) executor.train_step(batch(4));
  CHECK(executor.step() == 4);
  observed().failing_function = "client_buffer_from_host_buffer";
  CHECK(contains(error_of([&] { executor.parameters(); }), "upload: "));
  CHECK(executor.step() == 1);
  executor.train_step(batch(4));
  CHECK(executor.step() == 2);
  CHECK(executor.slots()[0] == 2);
  CHECK(observed().violations.empty());
}

TEST_CASE("a step of a callback returns its sums, which do not belong to those of the epoch") {
  trainer model = model_on(1, true);
  auto& executor = model.executor();
  executor.launch_together(3);
  const auto first = executor.train_step(batch(4));
  const auto own = model.train_step(batch(4));
  CHECK(own[0].count == 1);
  CHECK(executor.step() == 2);
  const auto last = executor.train_step(batch(4));
  CHECK(first.get()[0].count == 1);
  CHECK(last.get()[0].count == 1);
  CHECK(executor.slots()[0] == 3);
}

TEST_CASE("after sums that could not be read, a step has its own") {
  trainer model = model_on(1);
  observed().failing_function = "buffer_to_host_buffer";
  CHECK(contains(error_of([&] { model.train_step(batch(4)); }), "injected"));
  model.train_step(batch(4));
  CHECK(observed().calls["buffer_to_host_buffer"] == 2);  // one array each
}

TEST_CASE("a copy to the host that has begun is waited for, also where the next one cannot begin") {
  trainer model = model_on(1);
  model.train_step(batch(4));
  observed().failing_function = "buffer_to_host_buffer";
  observed().failing_after = 1;
  CHECK(contains(error_of([&] { model.executor().parameters(); }), "injected"));
  CHECK(observed().violations.empty());
  CHECK(model.executor().parameters().size() > 0);
}

TEST_CASE("a step gets its scalars, and a random key of its own") {
  trainer model = model_on(1);
  model.set_learning_rate(0.25);
  model.train_step(batch(4));
  const auto key = last_argument<std::uint64_t>(0);
  model.train_step(batch(4));
  CHECK(last_argument<std::uint64_t>(0) != key);
  const auto scalars = last_argument<std::array<float, 2>>(1);
  CHECK(scalars == std::array{1.0f, 0.25f});
}

TEST_CASE("the last batch of an epoch is padded; each size has one module") {
  trainer model = model_on(2);
  model.fit(x, y, epochs(2), batch_size(4), shuffle(false), verbosity::off);  // 4, 4, 2
  CHECK(made.size() == 2);
  CHECK(made[0].rows == 2);
  CHECK(!made[0].is_padded);
  CHECK(made[1].rows == 2);
  CHECK(made[1].is_padded);
  CHECK(last_argument<std::int32_t>(3) == 2);  // row_count of replica 0
  CHECK(last_argument<std::int32_t>(2) == 2);  // batch_count
  model.fit(x, y, batch_size(8), shuffle(false), verbosity::off);
  CHECK(made.size() == 3);
  CHECK(made[2].rows == 4);  // of eight samples; the two that are left have the padded module
}

TEST_CASE("weights of samples have a module of their own") {
  trainer model = model_on(1);
  model.train_step(batch(4));
  const std::vector<float> weights{1, 2, 3, 4};
  samples<float> weighed = batch(4);
  weighed.truths[0].weights = weights.data();
  model.train_step(weighed);
  REQUIRE(made.size() == 2);
  CHECK(made[1].has_weights);
  CHECK(last_argument<std::array<float, 4>>(2) == std::array{1.0f, 2.0f, 3.0f, 4.0f});
}

TEST_CASE("evaluation and prediction, of fewer rows than were prepared") {
  trainer model = model_on(2);
  const logs values = model.evaluate(x, y, batch_size(4));
  CHECK(values["accuracy"] == 2.0 / 3.0);  // of the mock: (2, 3) in each batch
  const auto predicted = model.predict(x);
  CHECK(predicted.values.size() == 20);
  CHECK(predicted.values[9] == 9);
  CHECK(predicted.values[10] == 0);  // of replica 1, which counts from 0
  CHECK(model.executor().step() == 0);
  std::vector<float> three(6);
  model.executor().predict(batch(3), three.data());
  CHECK(three == std::vector<float>{0, 1, 2, 3, 0, 1});  // two of replica 0, one of replica 1
}

TEST_CASE("the number of a processor's devices is checked before the plugin sees it") {
  const auto error_for = [](auto value) {
    return error_of([&] { (void)choose_devices(MOCK_PJRT, {{"cpu_device_count", value}}, 0, {}); });
  };
  for (const std::string& refused :
       {error_for(std::string("4")), error_for(true), error_for(4.0f), error_for(std::int64_t(0)), error_for(std::int64_t(1025))})
    CHECK(refused == "the option cpu_device_count takes a whole number, std::int64_t, from 1 to 1024");
  CHECK(error_for(std::int64_t(3)) == "no error");
}

TEST_CASE("as many replicas as there are devices; a processor has as many as are asked for") {
  CHECK(model_on(0).executor().replicas() == 4);
  CHECK(model_on(6).executor().replicas() == 6);
  CHECK(observed().options_of_clients == std::vector<std::string>{"cpu_device_count"});
  CHECK(error_of([] { choose_devices(MOCK_PJRT, {{"cpu_device_count", std::int64_t(2)}}, 3, {}); }) ==
        "replicas is 3, but the plugin " MOCK_PJRT " has 2 devices");
  CHECK(error_of([] { model_on(-1); }) == "replicas is -1: it must be at least 1, or 0 for all devices");
  CHECK(error_of([] { model_on(1'000'000); }) == "replicas is 1000000: at most 1024 can share a batch");
}

TEST_CASE("after a step that failed on the device, no weights are read") {
  trainer model = model_on(1);
  model.train_step(batch(4));
  observed().failing_function = "client_buffer_from_host_buffer";
  CHECK(contains(error_of([&] { model.train_step(batch(4)); }), "injected"));
  CHECK(model.executor().step() == 1);
  model.train_step(batch(4));  // the state is unchanged
  observed().execution_fails = true;
  CHECK(contains(error_of([&] { model.train_step(batch(4)); }), "the device has failed"));
  const std::string lost = "the weights are lost: the last training step failed on the device while it changed them";
  CHECK(contains(error_of([&] { model.parameters(); }), lost));
  CHECK(contains(error_of([&] { model.train_step(batch(4)); }), lost));
}

TEST_CASE("weights that were sent in part only are sent again") {
  trainer model = model_on(2);
  const std::size_t bias = std::size_t(layout_of<network::items>.slots[1].offset);
  observed().failing_function = "client_buffer_from_host_buffer";
  observed().failing_after = 2;  // the third array of four
  CHECK(contains(error_of([&] { model.train_step(batch(4)); }), "injected"));
  model.train_step(batch(4));
  CHECK(model.executor().parameters()[bias] == 1);

  std::ranges::fill(model.executor().parameters(), 10.0f);
  model.executor().parameters_changed();
  observed().failing_function = "client_buffer_from_host_buffer";
  observed().failing_after = 1;  // replica 1 has the old array
  CHECK(contains(error_of([&] { model.train_step(batch(4)); }), "injected"));
  observed().calls.clear();
  model.train_step(batch(4));
  CHECK(observed().calls["client_buffer_from_host_buffer"] == 2 * 2 + 2 * 4);  // weights; input, truth, scalars and key
  CHECK(model.executor().parameters()[bias] == 11);
}

TEST_CASE("an evaluation or a prediction that fails leaves the weights") {
  trainer model = model_on(1);
  model.train_step(batch(4));
  observed().execution_fails = true;
  CHECK(contains(error_of([&] { model.evaluate(x, y); }), "the device has failed"));
  observed().execution_fails = true;
  CHECK(contains(error_of([&] { model.predict(x); }), "the device has failed"));
  model.train_step(batch(4));
  CHECK(model.executor().slots()[0] == 2);
}

TEST_CASE("each set of frozen layers has a module of its own, which is compiled once") {
  trainer model = model_on(1);
  model.train_step(batch(4));
  model.set_trainable("dense", false);
  for (int i = 0; i < 2; ++i) model.train_step(batch(4));
  model.set_trainable("dense", true);
  model.train_step(batch(4));
  model.set_trainable("dense", false);
  model.train_step(batch(4));
  REQUIRE(made.size() == 2);
  CHECK(made[0].frozen.empty());
  CHECK(made[1].frozen == "11");
  trainer other = model_on(1);  // the types of what the optimizer keeps are those of all layers
  other.set_trainable("dense", false);
  other.train_step(batch(4));
  CHECK(made.size() == 2);
  CHECK(made[1].frozen.empty());
  CHECK(observed().calls["client_compile"] == 1);
}

TEST_CASE("what the strategy cannot do, it says") {
  trainer model = model_on(1);
  model.executor().observe(nullptr);
  CHECK(contains(error_of([&] { model.executor().observe(reinterpret_cast<kernel_observer*>(&model)); }),
                 "whose kernels cannot be observed"));
}

TEST_CASE("tpu trains on all chips of a host, and says where it cannot train yet") {
  const auto environment = [](std::map<std::string, std::string> values) {
    return [values](const std::string& name) -> std::optional<std::string> {
      const auto at = values.find(name);
      return at == values.end() ? std::nullopt : std::optional(at->second);
    };
  };
  observed() = {};
  CHECK(tpu{.plugin = MOCK_PJRT}.devices().replicas == 4);
  CHECK(tpu{.plugin = MOCK_PJRT, .replicas = 2}.devices().replicas == 2);
  observed().devices_of_other_hosts = 12;
  CHECK(
      error_of([] { tpu{.plugin = MOCK_PJRT}.devices(); }) ==
      "tpu: the slice has 16 chips, of which this host has only some: tpu trains on the chips of one host, such as v5litepod-8, "
      "and multi_worker_xla on those of several");
  observed().devices_of_other_hosts = 0;

  const auto pod = [&](const char* names) {
    return tpu{.plugin = MOCK_PJRT, .environment = environment({{"TPU_WORKER_HOSTNAMES", names}})}.devices().replicas;
  };
  CHECK(pod("localhost") == 4);
  for (const char* const names : {"a,,b", ",", "a,b,", " "})
    CHECK(error_of([&] { pod(names); }) == "TPU_WORKER_HOSTNAMES is '" + std::string(names) + "', in which a name is empty");
  CHECK(error_of([&] { pod("a,b"); }) ==
        "tpu: the slice has 2 hosts: tpu trains on the chips of one host, such as v5litepod-8, and multi_worker_xla on those of "
        "several");
  const scratch_folder bus("module_executor");
  CHECK(tpu_chips(bus.path) == 0);
  bus.write("0000:00:04.0/vendor", "0x1ae0\n"), bus.write("0000:00:04.0/device", "0x0063\n");
  bus.write("0000:00:05.0/vendor", "0x1ae0\n"), bus.write("0000:00:05.0/device", "0x0042\n");  // a network card
  bus.write("0000:00:06.0/vendor", "0x8086\n"), bus.write("0000:00:06.0/device", "0x0063\n");
  CHECK(tpu_chips(bus.path) == 1);
  if (tpu_chips() == 0) CHECK(contains(error_of([] { tpu{}.devices(); }), "tpu: this machine has no TPU"));
}
