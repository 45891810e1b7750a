// The hooks of evaluate and predict: when each is called, which values it receives, and that all are called under every strategy.
#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <strata/callbacks/lambda_callback.hpp>
#include <strata/distribute/mirrored.hpp>
#include <strata/strata.hpp>
#include <strata/train/fitted_model.hpp>
#include <string>
#include <vector>

#include "error_of.hpp"
using namespace strata;
using namespace strata::core;
using strata::test::error_of;

namespace {

using net = sequential<input<4>, dense<3, softmax>>;

const std::vector<float> x = [] {
  std::vector<float> numbers;
  for (std::uint64_t i = 0; i < 4 * 25; ++i) numbers.push_back(float(philox{3}.uniform(i)));
  return numbers;
}();
const std::vector<int> y = [] {
  std::vector<int> labels;
  for (int i = 0; i < 25; ++i) labels.push_back(i * i % 3);
  return labels;
}();
auto batches() { return data::from_tensor_slices(data::array<float, shape{4}>(x), y) | data::batch<10>; }

auto make(const auto&... strategy) {
  return trainer{net{}, sgd{.learning_rate = 0.1}, sparse_categorical_crossentropy{}, accuracy{}, strategy...};
}

/// Records each call and the values that it sees.
struct witness {
  std::string calls{};
  std::vector<double> losses{};
  void note(const char* name, const pass_state& s) {
    calls += text(name, s.batches, s.samples);
    if (s.values.contains("loss")) losses.push_back(s.values["loss"]);
  }
  static std::string text(const char* name, long batches, long samples) {
    return std::string(name) + ' ' + std::to_string(batches) + ' ' + std::to_string(samples) + ", ";
  }
  void on_epoch_begin(training_state&) { calls += "epoch, "; }
  void on_epoch_end(training_state& s) {
    if (!s.skips_validation) CHECK(s.values["val_loss"] == losses.back());
  }
  void on_test_begin(pass_state& s) { note("test", s); }
  void on_test_batch_begin(pass_state& s) { note("from", s); }
  void on_test_batch_end(pass_state& s) { note("to", s); }
  void on_test_end(pass_state& s) { note("tested", s); }
  void on_predict_begin(pass_state& s) { note("predict", s); }
  void on_predict_batch_begin(pass_state& s) { note("from", s); }
  void on_predict_batch_end(pass_state& s) { note("to", s); }
  void on_predict_end(pass_state& s) { note("predicted", s); }
};
static_assert(callback<witness>);

const std::string of_test = "test 0 0, from 0 0, to 1 10, from 1 10, to 2 20, from 2 20, to 3 25, tested 3 25, ";

/// A callback without any other hook.
struct counts_tests {
  int* count;
  void on_test_end(pass_state&) const { ++*count; }
};

}  // namespace

TEST_CASE("hooks of evaluate see each batch, and the metrics over all samples so far") {
  auto model = make();
  witness seen;
  const logs all = model.evaluate(batches(), seen);
  CHECK(seen.calls == of_test);
  REQUIRE(seen.losses.size() == 6);  // from, to, from, to, tested; the first batch begins without any
  CHECK(seen.losses.back() == all["loss"]);
  CHECK(seen.losses[0] == model.evaluate(std::span(x).first(40), std::span(y).first(10))["loss"]);
  CHECK(seen.losses[2] == model.evaluate(std::span(x).first(80), std::span(y).first(20), batch_size(10))["loss"]);
  CHECK(all == model.evaluate(batches()));
}

TEST_CASE("and so do arrays, with a batch size, weights and a constant callback") {
  auto model = make();
  witness seen;
  int count = 0;
  const counts_tests counts{&count};
  const std::vector<float> weights(25, 0.5f);
  const logs all = model.evaluate(x, y, seen, batch_size(10), sample_weight(weights), counts);
  CHECK(seen.calls == of_test);
  CHECK(count == 1);
  CHECK(all == model.evaluate(x, y, sample_weight(weights), batch_size(10)));
}

TEST_CASE("the validation of fit calls the hooks of evaluate in each epoch that has one") {
  auto model = make();
  witness seen;
  model.fit(batches(), epochs(3), validation(batches()), validation_freq(2), verbose::off,
            lambda_callback{.on_test_begin = [&](pass_state&) { seen.calls += "also "; }}, seen);
  CHECK(seen.calls == "epoch, epoch, also " + of_test + "epoch, ");
  CHECK(seen.losses.size() == 6);
}

TEST_CASE("hooks of predict see how many samples there were") {
  auto model = make();
  witness of_batches, of_array;
  const auto all = model.predict(batches(), of_batches);
  CHECK(of_batches.calls == "predict 0 0, from 0 0, to 1 10, from 1 10, to 2 20, from 2 20, to 3 25, predicted 3 25, ");
  CHECK(model.predict(x, of_array).values == all.values);
  CHECK(of_array.calls == "predict 0 0, from 0 0, to 1 25, predicted 1 25, ");
  CHECK(of_array.losses.empty());
  CHECK(model.predict(x).values == all.values);
}

TEST_CASE("a hook of evaluate or predict reaches the model") {
  auto model = make();
  struct reader {
    std::size_t weights = 0;
    void on_test_end(pass_state&, fitted_model& m) { weights += m.weights().size(); }
    void on_predict_batch_end(pass_state&, fitted_model& m) { weights += 10 * m.weights().size(); }
  } reads;
  model.evaluate(batches(), reads);
  CHECK(reads.weights == 2);
  model.predict(x, reads);
  CHECK(reads.weights == 22);
  model.fit(batches(), validation(batches()), verbose::off, reads);
  CHECK(reads.weights == 24);
}

TEST_CASE("under every strategy metrics in hooks are those of the global batch") {
  const auto losses = [](auto model) {
    witness seen;
    model.evaluate(batches(), seen);
    return seen.losses;
  };
  const auto expected = losses(make(one_device{{.threads = 1, .leaves = 4}}));
  REQUIRE(expected.size() == 6);
  CHECK(losses(make(mirrored{cpus(2), {.leaves = 4}})) == expected);
}

TEST_CASE("an exception of a hook ends evaluate and predict, which work again afterwards") {
  auto model = make();
  const lambda_callback fails{.on_test_batch_end = [](pass_state&) { throw strata_error("no more"); },
                              .on_predict_begin = [](pass_state&) { throw strata_error("not that"); }};
  CHECK(error_of([&] { model.evaluate(batches(), fails); }) == "no more");
  CHECK(error_of([&] { model.predict(batches(), fails); }) == "not that");
  CHECK(model.evaluate(batches())["loss"] == model.evaluate(x, y, batch_size(10))["loss"]);
}
