// The interface of trainer and executor: the step, the learning rate, and processes that only serve.
#include <doctest/doctest.h>

#include <limits>
#include <memory>
#include <strata/parameter_server/parameter_executor.hpp>
#include <strata/strata.hpp>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "gradient_check.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {

using net = sequential<input<4>, dense<3, softmax>>;

/// Servers in this process, with four workers: each push of this worker finds three updates of the others applied as well.
template <class T>
struct with_three_others {
  struct state {
    std::vector<T> weights;
    std::vector<double> rates;  // pushed by this worker
    std::int64_t step = -1;     // of this worker, at its pull
    long updates = 0;
  };
  std::shared_ptr<state> kept = std::make_shared<state>();
  int own_rank = 0;

  int rank() const { return own_rank; }
  int size() const { return 4; }
  bool is_synchronous() const { return false; }
  static void announce_error(const std::string&) {}
  double communicating() const { return 0; }
  double waiting() const { return 0; }
  void assign(const T* from, bool) { kept->weights.assign(from, from + layout_of<net::items>.size); }
  long pull(T* to, std::int64_t step) {
    kept->step = step;
    std::ranges::copy(kept->weights, to);
    return kept->updates;
  }
  void pull_rows(std::span<const std::uint32_t>, T*) {}
  long push(pushed_gradient<T>& gradient, T* to) {
    kept->rates.push_back(gradient.learning_rate);
    kept->updates += 4;
    std::ranges::copy(kept->weights, to);
    return kept->updates;
  }
};

struct asynchronous_worker {
  static constexpr auto name = "asynchronous_worker";
  with_three_others<float> servers;
  template <class Program>
  using executor = parameter_executor<Program, with_three_others>;
  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t seed) const {
    return {std::move(optimizer), seed, servers, {.threads = 1}};
  }
};

struct only_serves {
  static constexpr auto name = "only_serves";
  int* served;
  template <class Program>
  using executor = parameter_executor<Program, with_three_others>;
  template <class Program>
  executor<Program> make(typename Program::optimizer optimizer, std::uint64_t) const {
    return {std::move(optimizer), [served = served] { ++*served; }};
  }
};

struct record_rates {
  std::vector<double>&at_begin, &at_batch;
  std::vector<long>& steps;
  void on_epoch_begin(training_state& s) { at_begin.push_back(s.learning_rate); }
  void on_batch_end(training_state& s) {
    at_batch.push_back(s.learning_rate);
    steps.push_back(s.step);
  }
};

auto batches() {
  return data::from_tensor_slices(data::array<float, shape{4}>(random_numbers<float>(32, 5)),
                                  std::vector<int>{0, 1, 2, 0, 1, 2, 0, 1}) |
         data::batch<2>;
}
const auto halves_each_step = [](long step) { return std::pow(0.5, double(step)); };

}  // namespace

TEST_CASE("the learning rate reported is the one used, although other workers' updates count") {
  asynchronous_worker worker;
  trainer model{net{}, sgd{.learning_rate = halves_each_step}, sparse_categorical_crossentropy{}, worker};
  std::vector<double> at_begin, at_batch;
  std::vector<long> steps;
  SUBCASE("an epoch is a step") {
    model.fit(batches(), epochs(3), steps_per_epoch(1), record_rates{at_begin, at_batch, steps}, verbosity::off);
    CHECK(at_begin == worker.servers.kept->rates);
  }
  SUBCASE("an epoch has several steps") {
    model.fit(batches(), epochs(1), steps_per_epoch(3), record_rates{at_begin, at_batch, steps}, verbosity::off);
    CHECK(at_begin == std::vector<double>{1});
  }
  CHECK(worker.servers.kept->rates == std::vector<double>{1, 1. / 16, 1. / 256});
  CHECK(at_batch == worker.servers.kept->rates);
  CHECK(steps == std::vector<long>{4, 8, 12});
  CHECK(model.learning_rate() == std::pow(0.5, 12));
  CHECK(model.executor().step() == 12);
}

TEST_CASE("a worker that starts late reports the rate that it will use") {
  asynchronous_worker worker;
  {
    trainer first{net{}, sgd{}, sparse_categorical_crossentropy{}, worker};
    first.fit(batches(), epochs(1), steps_per_epoch(2), verbosity::off);
  }
  worker.servers.kept->rates.clear();
  trainer late{net{}, sgd{.learning_rate = halves_each_step}, sparse_categorical_crossentropy{}, worker};
  std::vector<double> at_begin, at_batch;
  std::vector<long> steps;
  late.fit(batches(), epochs(2), steps_per_epoch(1), record_rates{at_begin, at_batch, steps}, verbosity::off);
  CHECK(at_begin == std::vector<double>{1. / 256, 1. / 4096});
  CHECK(at_begin == worker.servers.kept->rates);
}

TEST_CASE("a worker that joins a running training with a loop of its own reports the rate that it will use") {
  asynchronous_worker worker;
  {
    trainer first{net{}, sgd{}, sparse_categorical_crossentropy{}, worker};
    first.fit(batches(), epochs(1), steps_per_epoch(2), verbosity::off);
  }
  worker.servers.kept->rates.clear();
  worker.servers.own_rank = 1;
  trainer late{net{}, sgd{.learning_rate = halves_each_step}, sparse_categorical_crossentropy{}, worker};
  CHECK(late.executor().step() == 8);
  const std::vector<float> inputs(8);
  const std::vector<std::int32_t> labels{0, 1};
  std::vector<double> reported;
  for (int step = 0; step < 2; ++step) {
    reported.push_back(late.learning_rate());
    late.train_step({inputs.data(), labels.data(), 2});
  }
  CHECK(reported == std::vector<double>{1. / 256, 1. / 4096});
  CHECK(reported == worker.servers.kept->rates);
  CHECK(late.executor().step() == 16);

  SUBCASE("weights that it sets itself give way to those of the servers") {
    const std::vector<float> zeros(late.parameters().size());
    worker.servers.kept->weights.assign(zeros.size(), 1);
    late.set_parameters(zeros);
    worker.servers.kept->updates = 20;
    const double said = late.learning_rate();
    late.train_step({inputs.data(), labels.data(), 2});
    CHECK(said == std::pow(0.5, 16));
    CHECK(worker.servers.kept->rates.back() == said);  // not the rate of the newer step that arrives with the weights
    CHECK(late.executor().step() == 24);
    const std::vector<float> pushed_to(late.parameters().begin(), late.parameters().end());
    CHECK(pushed_to != zeros);
  }
}

TEST_CASE("at the end of an epoch the step counts what other workers have done meanwhile") {
  asynchronous_worker worker;
  struct others_go_on {
    asynchronous_worker& worker;
    std::vector<long> steps{};
    void on_batch_end(training_state&) { worker.servers.kept->updates += 10; }
    void on_epoch_end(training_state& s) { steps.push_back(s.step); }
  } others{worker};
  trainer model{net{}, sgd{}, sparse_categorical_crossentropy{}, worker};
  model.fit(batches(), epochs(2), steps_per_epoch(1), others, verbosity::off);
  CHECK(others.steps == std::vector<long>{14, 28});
  CHECK(model.executor().step() == 28);
}

TEST_CASE("a worker that goes on from a step tells its servers which") {
  asynchronous_worker worker;
  trainer model{net{}, sgd{}, sparse_categorical_crossentropy{}, worker};
  model.executor().set_step(7);
  model.fit(batches(), epochs(3), initial_epoch(2), steps_per_epoch(1), verbosity::off);
  CHECK(worker.servers.kept->step == 8);
  CHECK_THROWS_WITH_AS(model.executor().set_step(5), "set_step(5): this worker has made 8 steps already", strata_error);
}

TEST_CASE("a rate set by hand or by a callback replaces the schedule, everywhere") {
  trainer model{net{}, sgd{.learning_rate = halves_each_step}, sparse_categorical_crossentropy{}, one_device{{.threads = 1}}};
  std::vector<double> at_begin, at_batch;
  std::vector<long> steps;
  struct set_at_end {
    void on_epoch_end(training_state& s) {
      if (s.epoch == 0) s.new_learning_rate = 0.25;
    }
  };
  model.fit(batches(), epochs(2), steps_per_epoch(2), record_rates{at_begin, at_batch, steps}, set_at_end{}, verbosity::off);
  CHECK(at_batch == std::vector<double>{1, 0.5, 0.25, 0.25});
  CHECK(at_begin == std::vector<double>{1, 0.25});
  CHECK(steps == std::vector<long>{1, 2, 3, 4});
  CHECK(model.executor().learning_rate_by_hand() == 0.25);
  model.set_learning_rate(0.125);
  CHECK(model.learning_rate() == 0.125);
  for (const double wrong : {-0.5, 1e39, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    CHECK(error_of([&] { model.set_learning_rate(wrong); }).find("sgd: learning_rate = ") == 0);
  CHECK(error_of([&] { model.set_learning_rate(-0.5); }) == "sgd: learning_rate = -0.5 must be at least 0 and finite");
  CHECK(model.learning_rate() == 0.125);
}

TEST_CASE("a process that keeps parameters serves in fit, and refuses what only a worker can do") {
  int served = 0;
  trainer model{net{}, sgd{}, sparse_categorical_crossentropy{}, only_serves{&served}};
  CHECK(model.fit(batches(), epochs(3), verbosity::off).empty());
  CHECK(served == 1);
  CHECK(model.serve());
  CHECK(model.fit(batches(), epochs(3), verbosity::off).empty());
  CHECK(served == 1);
  CHECK(!model.is_chief());
  const auto refusal = "this process keeps parameters for the workers: all that its trainer can do is fit() or serve()";
  CHECK(error_of([&] { model.evaluate(batches()); }) == refusal);
  CHECK(error_of([&] { model.predict(batches()); }) == refusal);
  CHECK(error_of([&] { model.parameters(); }) == refusal);

  trainer worker{net{}, sgd{}, sparse_categorical_crossentropy{}, one_device{{.threads = 1}}};
  CHECK(!worker.serve());
}

TEST_CASE("a trainer that is const shows its parameters") {
  const trainer model{net{}, sgd{}, sparse_categorical_crossentropy{}, one_device{{.threads = 1}}};
  CHECK(model.parameters().size() == std::size_t(layout_of<net::items>.size));
  CHECK(model.is_chief());
}
