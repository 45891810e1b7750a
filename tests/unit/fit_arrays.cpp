// fit, evaluate, predict and validation on arrays: the results are those of a data set of these arrays.
#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <set>
#include <span>
#include <strata/callbacks/csv_logger.hpp>
#include <strata/callbacks/early_stopping.hpp>
#include <strata/callbacks/reduce_lr_on_plateau.hpp>
#include <strata/communicators/in_process.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/strata.hpp>
#include <strata/train/backup_and_restore.hpp>
#include <string>
#include <thread>
#include <vector>

#include "error_of.hpp"
#include "gradient_check.hpp"
#include "scratch_folder.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {

using net = sequential<input<2, 2>, flatten, dense<8, relu>, dense<3, softmax>>;
constexpr int count = 70;

/// Samples of three classes.
struct points {
  std::vector<float> x = random_numbers<float>(count * 4, 11);
  std::vector<std::int32_t> y;
  points() {
    for (std::size_t n = 0; n < count; ++n) {
      y.push_back(std::int32_t(n % 3));
      x[n * 4 + n % 3] += 3;
    }
  }
  auto view() const { return data::from_tensor_slices(data::array<float, shape{2, 2}>(x), y); }
};

auto make_model(std::uint64_t s = 5) {
  return trainer{net{},   adam{.learning_rate = 0.02}, sparse_categorical_crossentropy{}, accuracy{},
                 seed(s), one_device{{.threads = 2}}};
}
template <class Model>
std::vector<float> weights_of(const Model& model) {
  return {model.parameters().begin(), model.parameters().end()};
}
/// The weights after fit with these arguments.
std::vector<float> fitted(auto&&... arguments) {
  auto model = make_model();
  model.fit(arguments..., verbosity::off);
  return weights_of(model);
}
template <class To>
std::vector<To> as(const std::vector<std::int32_t>& y) {
  return {y.begin(), y.end()};
}

}  // namespace

TEST_CASE("arrays train as their data set, shuffled by the seed of the trainer, does") {
  const points p;
  const auto expected = fitted(p.view() | data::shuffle(count, {.seed = 5}) | data::batch<16>, epochs(3));
  CHECK(fitted(p.x, p.y, batch_size(16), epochs(3)) == expected);
  CHECK(fitted(std::span(p.x), std::span(p.y), epochs(3), batch_size(16), shuffle(true)) == expected);
  CHECK(fitted(p.x, as<std::uint8_t>(p.y), epochs(3), batch_size(16)) == expected);
  CHECK(fitted(p.x, as<long>(p.y), epochs(3), batch_size(16)) == expected);
  CHECK(fitted(std::vector<double>(p.x.begin(), p.x.end()), p.y, epochs(3), batch_size(16)) == expected);
  CHECK(fitted(data::array<float, shape{2, 2}>(p.x), p.y, epochs(3), batch_size(16)) == expected);
  std::vector<std::array<std::array<float, 2>, 2>> rows(count);
  for (std::size_t i = 0; i < p.x.size(); ++i) rows[i / 4][i / 2 % 2][i % 2] = p.x[i];
  CHECK(fitted(rows, p.y, epochs(3), batch_size(16)) == expected);
  CHECK(fitted(p.x, p.y, batch_size(16), epochs(3), shuffle(false)) == fitted(p.view() | data::batch(16), epochs(3)));
  CHECK(fitted(p.x, p.y, epochs(3)) == fitted(p.view() | data::shuffle(count, {.seed = 5}) | data::batch<32>, epochs(3)));
  CHECK(fitted(p.x, p.y, batch_size(1000)) == fitted(p.view() | data::shuffle(count, {.seed = 5}) | data::batch<count>));
}

TEST_CASE("the seed decides the order, and each epoch has its own") {
  const points p;
  auto model = make_model(1), other = make_model(2);
  other.set_parameters(model.parameters());
  model.fit(p.x, p.y, batch_size(16), verbosity::off), other.fit(p.x, p.y, batch_size(16), verbosity::off);
  CHECK(weights_of(model) != weights_of(other));
  auto twice = make_model(1);
  twice.fit(p.x, p.y, batch_size(16), epochs(2), verbosity::off);
  model.fit(p.x, p.y, batch_size(16), verbosity::off);  // an epoch 0 again
  CHECK(weights_of(twice) != weights_of(model));
}

TEST_CASE("targets: rows of numbers, integers for losses that compare numbers") {
  const points p;
  std::vector<float> one_hot(count * 3);
  for (std::size_t n = 0; n < count; ++n) one_hot[n * 3 + std::size_t(p.y[n])] = 1;
  const auto weights = [&](const auto& y) {
    trainer model{net{}, sgd{}, categorical_crossentropy{}, seed(5)};
    model.fit(p.x, y, batch_size(16), verbosity::off);
    return weights_of(model);
  };
  trainer model{net{}, sgd{}, categorical_crossentropy{}, seed(5)};
  model.fit(p.view() | data::one_hot<3> | data::shuffle(count, {.seed = 5}) | data::batch(16), verbosity::off);
  CHECK(weights(one_hot) == weights_of(model));
  CHECK(weights(data::array<std::uint8_t, shape{3}>(std::vector<std::uint8_t>(one_hot.begin(), one_hot.end()))) ==
        weights_of(model));

  using line = sequential<input<4>, dense<1>>;
  const auto loss = [&](const auto& y) {
    trainer regression{line{}, sgd{}, mean_squared_error{}};
    return regression.fit(p.x, y, verbosity::off)["loss"];
  };
  CHECK(loss(p.y) == loss(std::vector<float>(p.y.begin(), p.y.end())));
}

TEST_CASE("evaluate, predict and validation") {
  const points p;
  auto model = make_model();
  const training_history past = model.fit(p.x, p.y, epochs(2), batch_size(16), validation(p.x, p.y), verbosity::off);
  const logs seen = model.evaluate(p.x, p.y, batch_size(16));
  CHECK(seen == model.evaluate(p.view() | data::batch<16>));
  CHECK(past["val_loss"].back() == seen["loss"]);
  CHECK(past["val_accuracy"].back() == seen["accuracy"]);

  const auto all = model.predict(p.x);
  CHECK(all.values == model.predict(p.view() | data::batch<7>).values);
  CHECK(model.predict(std::vector<double>(p.x.begin(), p.x.end())).values == all.values);
  CHECK(model.predict(data::array<float, shape{2, 2}>(p.x)).values == all.values);
  const auto one = model.predict(std::span(p.x).subspan(4 * 9, 4));
  CHECK(one.size() == 1);
  CHECK(std::ranges::equal(one.row(0), all.row(9)));
  CHECK(model.predict(std::array{1.f, 2.f, 3.f, 4.f}).size() == 1);
  CHECK(model.predict(std::vector<float>()).size() == 0);

  auto other = make_model(), moved = make_model();  // a data set to train on, arrays to validate with, also temporary ones
  const auto train = p.view() | data::shuffle(count, {.seed = 5}) | data::batch(16);
  CHECK(other.fit(train, epochs(2), validation(p.x, p.y), verbosity::off)["val_loss"] == past["val_loss"]);
  CHECK(moved.fit(train, epochs(2), validation(std::vector(p.x), std::vector(p.y)), verbosity::off)["val_loss"] ==
        past["val_loss"]);
}

TEST_CASE("validation_split holds the last samples back, before they are shuffled") {
  const points p;
  auto model = make_model(), expected = make_model();
  const training_history past =
      model.fit(p.x, p.y, epochs(2), batch_size(16), validation_split(0.2), verbosity::off);  // 56 and 14
  const training_history wanted =
      expected.fit(p.view() | data::take(56) | data::shuffle(56, {.seed = 5}) | data::batch<16>, epochs(2),
                   validation(p.view() | data::skip(56) | data::batch<14>), verbosity::off);
  CHECK(past["loss"] == wanted["loss"]);
  CHECK(past["val_loss"] == wanted["val_loss"]);
  CHECK(weights_of(model) == weights_of(expected));
  CHECK(validation_split(0.3).to_train(10) == 7);
  CHECK(validation_split(0.25).to_train(10) == 7);  // as in Keras, rounded down
  CHECK(error_of([&] { model.fit(p.x, p.y, validation_split(1)); }) ==
        "validation_split(1): the fraction must be above 0 and below 1; leave the option out to hold back no sample");
  CHECK(error_of([&] { model.fit(p.x, p.y, validation_split(1e-18)); }) ==
        "validation_split(1e-18): of 70 samples all would be used for training");
}

TEST_CASE("validation_freq and validation_steps") {
  const points p;
  auto model = make_model();
  struct epochs_with_validation {
    std::vector<int>& seen;
    void on_epoch_end(training_state& s) {
      CHECK(s.skips_validation != s.values.contains("val_loss"));
      if (!s.skips_validation) seen.push_back(s.epoch);
    }
  };
  std::vector<int> seen;
  const training_history past = model.fit(p.x, p.y, epochs(5), batch_size(16), validation(p.x, p.y), validation_freq(2),
                                          validation_steps(2), epochs_with_validation{seen}, verbosity::off);
  CHECK(seen == std::vector{1, 3});
  CHECK(past["val_loss"].size() == 2);
  auto again = make_model();
  again.fit(p.x, p.y, epochs(4), batch_size(16), verbosity::off);
  CHECK(past["val_loss"].back() ==
        again.evaluate(std::span(p.x).first(32 * 4), std::span(p.y).first(32), batch_size(16))["loss"]);

  CHECK(error_of([&] { model.fit(p.x, p.y, validation_freq(0)); }) == "fit: validation_freq(0): it must be at least 1");
  CHECK(error_of([&] { model.fit(p.x, p.y, validation_steps(-1)); }) == "fit: validation_steps(-1): it must be at least 0");
}

TEST_CASE("callbacks that watch a val_ value pass over the epochs without one") {
  const points p;
  const scratch_folder at("fit_arrays_freq");
  trainer model{net{}, sgd{.learning_rate = 0}, sparse_categorical_crossentropy{}};  // nothing gets better
  early_stopping stops({.patience = 1});
  const training_history past =
      model.fit(p.x, p.y, epochs(20), validation(p.x, p.y), validation_freq(3), stops, reduce_lr_on_plateau({.patience = 1}),
                csv_logger{(at / "log.csv").string()}, verbosity::off);
  CHECK(past.size() == 6);  // the third epoch has the best value, the sixth no better one
  std::ifstream file(at / "log.csv");
  std::string line;
  std::getline(file, line);
  CHECK(line.find("val_loss") != line.npos);
  std::getline(file, line);
  CHECK(line.find("NA") != line.npos);
}

TEST_CASE("sizes that do not go together") {
  const points p;
  auto model = make_model();
  const auto whole = std::span(p.x);
  CHECK(error_of([&] { model.fit(whole.first(277), p.y); }) ==
        "fit: x has 277 values: not a multiple of 4, and one sample has the shape (2, 2)");
  CHECK(error_of([&] { model.fit(whole.first(276), p.y); }) == "fit: x has 69 samples, but y has 70");
  CHECK(error_of([&] { model.fit(whole.first(0), std::span(p.y).first(0)); }) == "fit: x is empty");
  CHECK(error_of([&] { model.fit(whole, p.y, batch_size(0)); }) == "batch_size(0): a batch has at least one sample");
  CHECK(error_of([&] { model.evaluate(whole.first(276), p.y); }) == "evaluate: x has 69 samples, but y has 70");
  CHECK(error_of([&] { model.fit(whole, p.y, validation(whole, std::span(p.y).first(3))); }) ==
        "validation: x has 70 samples, but y has 3");
  CHECK(error_of([&] { model.predict(whole.first(5)); }) ==
        "predict: x has 5 values: not a multiple of 4, and one sample has the shape (2, 2)");
  trainer regression{sequential<input<4>, dense<2>>{}, sgd{}, mean_squared_error{}};
  CHECK(error_of([&] { regression.fit(p.x, std::vector<float>(139)); }) ==
        "fit: y has 139 values: not a multiple of 2, and one sample has the shape (2,)");
  auto wrong = p.y;
  wrong[3] = 3;
  CHECK(error_of([&] { model.fit(p.x, wrong, shuffle(false)); }) ==
        "sample 3 has the label 3, but the network has 3 classes: labels must be 0 to 2");
}

TEST_CASE("a training on arrays that is interrupted goes on to the same bits") {
  const points p;
  const scratch_folder at("fit_arrays");
  auto whole = make_model();
  whole.fit(p.x, p.y, batch_size(16), epochs(3), verbosity::off);
  struct terminate {
    void on_batch_end(training_state& s) {
      if (s.step == 7) ::raise(SIGTERM);
    }
  };
  auto first = make_model(), second = make_model();
  backup_and_restore backup{at / "backup"};
  first.fit(p.x, p.y, batch_size(16), epochs(3), terminate{}, backup, verbosity::off);
  REQUIRE(backup.interrupted());
  second.fit(p.x, p.y, batch_size(16), epochs(3), backup, verbosity::off);
  CHECK(weights_of(second) == weights_of(whole));
}

TEST_CASE("processes train on arrays to the bits of one") {
  const points p;
  const auto trained = [&](const auto& strategy) {
    trainer model{net{}, adam{.learning_rate = 0.02}, sparse_categorical_crossentropy{}, accuracy{}, strategy};
    model.fit(p.x, p.y, batch_size(16), epochs(2), validation(p.x, p.y), verbosity::off);
    return weights_of(model);
  };
  const auto expected = trained(one_device{{.threads = 1, .leaves = 6}});
  std::vector<std::vector<float>> weights(3);
  std::vector<std::thread> threads;
  for (in_process& member : in_process::group(3, std::chrono::seconds(30)))
    threads.emplace_back(
        [&, member] { weights[std::size_t(member.rank())] = trained(synchronous_among{member, {.threads = 1, .leaves = 6}}); });
  for (std::thread& each : threads) each.join();
  for (const auto& each : weights) CHECK(each == expected);
}

TEST_CASE("processes that train on samples of their own share the arrays") {
  std::vector<std::int32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto all = data::from_tensor_slices(std::vector<float>(count), numbers);
  std::multiset<std::int32_t> seen;
  for (std::size_t rank = 0; rank < 3; ++rank)
    for (const samples<float>& batch :
         strata::detail::batches_to_train<float>(all, {}, batch_size(16), shuffle(true), 5, {rank, 3}))
      seen.insert(batch.labels(), batch.labels() + batch.count);
  CHECK(std::vector(seen.begin(), seen.end()) == numbers);
}
