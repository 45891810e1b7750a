// Weights of samples and of classes: their effect on loss and gradient, and what they must not change.
#include <doctest/doctest.h>

#include <chrono>
#include <limits>
#include <map>
#include <span>
#include <strata/communicators/in_process.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/strata.hpp>
#include <strata/train/gradient_error.hpp>
#include <thread>
#include <vector>

#include "error_of.hpp"
#include "gradient_check.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {

using net = sequential<input<4>, dense<8, relu>, dense<3, softmax>>;
constexpr int count = 40;

struct points {
  std::vector<float> x = random_numbers<float>(count * 4, 3), weights;
  std::vector<int> y;
  points() {
    for (int n = 0; n < count; ++n) y.push_back(n * 7 % 3), weights.push_back(float(n % 5) / 2);
  }
  /// The weights of the classes, 3, 1 and 0.5, for each sample.
  std::vector<double> of_classes() const {
    std::vector<double> w;
    for (const int label : y) w.push_back(label == 0 ? 3 : label == 1 ? 1 : 0.5);
    return w;
  }
};
template <class Model>
std::vector<float> weights_of(const Model& model) {
  return {model.parameters().begin(), model.parameters().end()};
}
auto make_model(one_device<> device = one_device{{.threads = 1}}) {
  return trainer{net{}, adam{.learning_rate = 0.02}, sparse_categorical_crossentropy{}, accuracy{}, device};
}
std::vector<float> fitted(auto&&... arguments) {
  auto model = make_model();
  model.fit(arguments..., batch_size(16), epochs(2), verbosity::off);
  return weights_of(model);
}

template <class Last, class Loss>
double error_of_gradient(Last, Loss) {
  using whole = sequential<input<4>, dense<6, tanh_activation>, Last>;
  const std::vector<double> x = random_numbers<double>(10 * 4, 1), weights{0, 1, 2, 0.5, 3, 1, 0.25, 1, 7, 0};
  std::vector<double> targets = random_numbers<double>(10 * std::size_t(whole::output_shape.size()), 2);
  for (double& t : targets) t = (t + 1) / 2;
  const std::vector<std::int32_t> labels{0, 1, 2, 0, 1, 2, 0, 1, 2, 0};
  samples<double> batch(x.data(), 10);
  batch.truths[0] = {Loss::labels == label_kind::sparse ? labels.data() : nullptr,
                     Loss::labels == label_kind::dense ? targets.data() : nullptr, weights.data()};
  return gradient_error(whole{}, Loss{}, batch);
}

}  // namespace

TEST_CASE("the gradient is that of the weighted loss") {
  CHECK(error_of_gradient(dense<3, softmax>{}, sparse_categorical_crossentropy{}) < 1e-6);
  CHECK(error_of_gradient(dense<3, softmax>{}, categorical_crossentropy{}) < 1e-6);
  CHECK(error_of_gradient(dense<3>{}, sparse_categorical_crossentropy<from_logits>{}) < 1e-6);
  CHECK(error_of_gradient(dense<2, sigmoid>{}, binary_crossentropy{}) < 1e-6);
  CHECK(error_of_gradient(dense<2>{}, mean_squared_error{}) < 1e-6);
  CHECK(error_of_gradient(dense<3>{}, cosine_similarity{}) < 1e-6);
}

TEST_CASE("the loss is the sum of weight times loss, divided by the number of samples; metrics have no weights") {
  const points p;
  auto model = make_model();
  double expected = 0;
  for (std::size_t n = 0; n < count; ++n)
    expected += double(p.weights[n]) * model.evaluate(std::span(p.x).subspan(n * 4, 4), std::span(p.y).subspan(n, 1))["loss"];
  const logs plain = model.evaluate(p.x, p.y), weighted = model.evaluate(p.x, p.y, sample_weight(p.weights), batch_size(16));
  CHECK(weighted["loss"] == doctest::Approx(expected / count).epsilon(1e-5));
  CHECK(weighted["accuracy"] == plain["accuracy"]);
  const training_history past = model.fit(p.x, p.y, validation(p.x, p.y, p.weights), batch_size(16), verbosity::off);
  CHECK(past["val_loss"].back() == model.evaluate(p.x, p.y, sample_weight(p.weights), batch_size(16))["loss"]);
}

TEST_CASE("weights of 1 change no bit, and samples of weight 0 train nothing") {
  const points p;
  const auto plain = fitted(p.x, p.y);
  CHECK(fitted(p.x, p.y, sample_weight(std::vector<float>(count, 1))) == plain);
  CHECK(fitted(p.x, p.y, sample_weight(p.weights)) != plain);
  auto model = make_model(), untouched = make_model();
  model.fit(p.x, p.y, sample_weight(std::vector<int>(count)), verbosity::off);
  CHECK(weights_of(model) == weights_of(untouched));
}

TEST_CASE("weights stay with their samples when these are shuffled") {
  const points p;
  std::vector<float> wrong_first(p.x);
  std::vector<float> weights(count, 1);
  for (std::size_t n = 0; n < count; n += 3) {  // values that would ruin the training have weight 0
    weights[n] = 0;
    for (std::size_t k = 0; k < 4; ++k) wrong_first[n * 4 + k] = 1e5f;
  }
  const auto expected = [&] {
    std::vector<float> zeros(p.x);
    for (std::size_t n = 0; n < count; n += 3)
      for (std::size_t k = 0; k < 4; ++k) zeros[n * 4 + k] = 0;
    return fitted(zeros, p.y, sample_weight(weights));
  }();
  CHECK(fitted(wrong_first, p.y, sample_weight(weights)) == expected);
}

TEST_CASE("a data set with weights trains and evaluates as arrays with weights do") {
  const points p;
  const auto batches = data::from_tensor_slices(data::array<float, shape{4}>(p.x), p.y) |
                       data::sample_weight(std::span<const float>(p.weights)) | data::shuffle(count, {.seed = 1}) |
                       data::batch<16>;
  auto of_set = make_model(), of_arrays = make_model();
  of_set.fit(batches, epochs(2), verbosity::off);
  of_arrays.fit(p.x, p.y, sample_weight(p.weights), batch_size(16), epochs(2), verbosity::off);
  CHECK(weights_of(of_set) == weights_of(of_arrays));
  CHECK(of_set.evaluate(batches)["loss"] ==
        doctest::Approx(of_arrays.evaluate(p.x, p.y, sample_weight(p.weights), batch_size(16))["loss"]));
  CHECK(error_of([&] { of_set.fit(batches, class_weight{{0, 3.0}}, verbosity::off); }) ==
        "fit: the batches have weights, so they cannot have those of classes, too");
}

TEST_CASE("class_weight is the sample_weight of the class of each sample") {
  const points p;
  const auto expected = fitted(p.x, p.y, sample_weight(p.of_classes()));
  CHECK(fitted(p.x, p.y, class_weight{{0, 3.0}, {2, 0.5}}) == expected);
  CHECK(fitted(p.x, p.y, class_weight(std::map<int, double>{{0, 3.0}, {1, 1.0}, {2, 0.5}})) == expected);
  auto model = make_model();  // of a data set, too
  const auto batches =
      data::from_tensor_slices(data::array<float, shape{4}>(p.x), p.y) | data::shuffle(count, {.seed = 1}) | data::batch<16>;
  model.fit(batches, class_weight{{0, 3.0}, {2, 0.5}}, epochs(2), verbosity::off);
  CHECK(weights_of(model) == expected);

  using bits = trainer<program<sequential<input<4>, dense<1, sigmoid>>, binary_crossentropy<>, sgd, type_list<>>, one_device<>>;
  const auto of_bits = [&](const auto& weights) {
    bits two{{}, sgd{}, {}};
    std::vector<int> y;
    for (const int label : p.y) y.push_back(label > 0);
    two.fit(p.x, y, weights, verbosity::off);
    return weights_of(two);
  };
  std::vector<double> w;
  for (const int label : p.y) w.push_back(label > 0 ? 5 : 1);
  CHECK(of_bits(class_weight{{1, 5.0}}) == of_bits(sample_weight(w)));
  CHECK(error_of([&] { model.fit(p.x, p.y, class_weight{{3, 1.0}}); }) ==
        "class_weight: there is no class 3: classes are 0 to 2");
}

TEST_CASE("any number of threads and processes: the same bits") {
  const points p;
  const auto trained = [&](const auto& strategy, const auto& weights) {
    trainer model{net{}, adam{.learning_rate = 0.02}, sparse_categorical_crossentropy{}, accuracy{}, strategy};
    model.fit(p.x, p.y, batch_size(16), epochs(2), weights, verbosity::off);
    return weights_of(model);
  };
  const auto check = [&](const auto& weights) {
    const auto expected = trained(one_device{{.threads = 1, .leaves = 6}}, weights);
    CHECK(trained(one_device{{.threads = 3, .leaves = 6}}, weights) == expected);
    std::vector<std::vector<float>> all(2);
    std::vector<std::thread> threads;
    for (in_process& member : in_process::group(2, std::chrono::seconds(30)))
      threads.emplace_back([&, member] {
        all[std::size_t(member.rank())] = trained(synchronous_among{member, {.threads = 1, .leaves = 6}}, weights);
      });
    for (std::thread& each : threads) each.join();
    for (const auto& each : all) CHECK(each == expected);
  };
  check(sample_weight(p.weights));
  check(class_weight{{0, 3.0}, {2, 0.5}});
}

TEST_CASE("processes with other weights of classes do not begin") {
  const points p;
  std::vector<std::string> said(2);
  std::vector<std::thread> threads;
  for (in_process& member : in_process::group(2, std::chrono::seconds(30)))
    threads.emplace_back([&, member] {
      const auto rank = std::size_t(member.rank());
      trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, synchronous_among{member, {.threads = 1}}};
      said[rank] = error_of([&] { model.fit(p.x, p.y, class_weight{{0, 3.0 + double(rank)}}, verbosity::off); });
    });
  for (std::thread& each : threads) each.join();
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CAPTURE(said[rank]);
    CHECK(said[rank].find(rank == 0 ? "class_weight {0: 3}" : "class_weight {0: 4}") != std::string::npos);
  }
}

TEST_CASE("another number of weights than of samples") {
  const points p;
  auto model = make_model();
  CHECK(error_of([&] { model.fit(p.x, p.y, sample_weight(std::span(p.weights).first(3))); }) ==
        "fit: x has 40 samples, but sample_weight has 3");
  auto weights = p.weights;
  weights[5] = std::numeric_limits<float>::infinity();
  CHECK(error_of([&] { model.fit(p.x, p.y, sample_weight(weights)); }) == "sample_weight: the weight of sample 5 is inf");
}
