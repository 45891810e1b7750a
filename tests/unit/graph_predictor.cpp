// Predictors that take their weights from a trainer: of its network, and of inner nodes of its graph.
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <span>
#include <strata/callbacks/lambda_callback.hpp>
#include <strata/data.hpp>
#include <strata/strata.hpp>
#include <strata/train/predictor.hpp>
#include <thread>
#include <vector>

#include "gradient_check.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
struct left : input<4> {};
struct right : input<4> {};
struct picture : input<6, 6, 1> {};
struct encoder : shared<dense<6, tanh_activation>, dense<3>> {};
struct code_of_left : node<left, encoder> {};
struct code_of_right : node<right, encoder> {};
struct seen : node<picture, conv2d<4, 3, relu>, batch_norm<>> {};
struct both : node<concat<code_of_left, code_of_right, branch<seen, flatten>>, dense<5, relu>> {};
struct kind : node<both, dense<3, softmax>> {};
struct box : node<both, dense<2>> {};
using net = graph<kind, box>;
static_assert(layout_of<graph<code_of_right>::items>.trainable_count == 4 * 6 + 6 + 6 * 3 + 3);
static_assert(detail::first_other_node<net, graph<code_of_right>> < 0);
static_assert(detail::first_other_node<graph<code_of_left>, graph<code_of_right>> == 0);

constexpr std::size_t count = 30;
const std::vector<float> of_left = random_numbers<float>(count * 4, 1), of_right = random_numbers<float>(count * 4, 2),
                         pixels = random_numbers<float>(count * 36, 3), boxes = random_numbers<float>(count * 2, 4);

auto trained() {
  std::vector<int> kinds(count);
  for (std::size_t i = 0; i < count; ++i) kinds[i] = int(i % 3);
  trainer model{net{}, adam{.learning_rate = 0.01}, compare<kind>(sparse_categorical_crossentropy{}),
                compare<box>(mean_squared_error{})};
  model.fit(of<left>(of_left), of<right>(of_right), of<picture>(pixels), of<kind>(kinds), of<box>(boxes), epochs(2),
            batch_size(10), verbosity::off);
  return model;
}

/// The code of a sample, by plain loops over the first four parameters of the net, which are those of the encoder.
std::vector<double> expected_code(std::span<const float> arena, const float* x) {
  constexpr const auto& l = layout_of<net::items>;
  const auto dense_of = [&](const std::vector<double>& in, int slot, int units) {
    std::vector<double> out;
    for (int j = 0; j < units; ++j) {
      double sum = arena[std::size_t(l.slots[slot + 1].offset + j)];
      for (std::size_t i = 0; i < in.size(); ++i) sum += in[i] * arena[std::size_t(l.slots[slot].offset + long(i) * units + j)];
      out.push_back(sum);
    }
    return out;
  };
  std::vector<double> hidden = dense_of(std::vector<double>(x, x + 4), 0, 6);
  for (double& each : hidden) each = std::tanh(each);
  return dense_of(hidden, 2, 3);
}
}  // namespace

TEST_CASE("a predictor takes the weights and the precision of a trainer of its network") {
  auto model = trained();
  const auto [kinds, places] = model.predict(of<left>(of_left), of<right>(of_right), of<picture>(pixels));
  const predictor alone{net{}, model};
  const auto [kinds_alone, places_alone] = alone.predict(of<left>(of_left), of<right>(of_right), of<picture>(pixels));
  CHECK(kinds_alone.values == kinds.values);
  CHECK(places_alone.values == places.values);

  using row = sequential<input<4>, dense<5, relu>, dense<2>>;
  trainer in_double{row{}, sgd{}, mean_squared_error{}, precision::f64{}};
  const std::vector<double> x = random_numbers<double>(12, 5);
  const predictor copy{row{}, in_double};
  CHECK(copy.predict(x).values == in_double.predict(x).values);
  const predictor with_threads{row{}, in_double, precision::f64{}, {.threads = 2}};
  CHECK(with_threads.predict(x).values == in_double.predict(x).values);
}

TEST_CASE("a predictor of inner nodes finds their weights in the graph that was trained") {
  auto model = trained();
  const predictor of_first{graph<code_of_left>{}, model};
  const predictor of_second{graph<code_of_right>{}, model};
  const auto code = of_first.predict(of<left>(of_left));
  // The encoder belongs to code_of_left in the net, and to code_of_right here.
  CHECK(of_second.predict(of_left).values == code.values);
  for (std::size_t i = 0; i < count; ++i) {
    const std::vector<double> expected = expected_code(model.parameters(), of_left.data() + 4 * i);
    for (std::size_t k = 0; k < 3; ++k) CHECK(code.row(i)[k] == doctest::Approx(expected[k]).epsilon(1e-5));
  }

  // Several outputs, one of them read by the other, in another order than in the net, with the state of a batch_norm.
  const predictor several{graph<box, seen, both, code_of_right>{}, model};
  const auto [places, features, joined, codes] = several.predict(of<picture>(pixels), of<right>(of_right), of<left>(of_left));
  CHECK(places.values == std::get<1>(model.predict(of<left>(of_left), of<right>(of_right), of<picture>(pixels))).values);
  CHECK(features.extents == shape{4, 4, 4});
  CHECK(codes.values == of_second.predict(of_right).values);
  CHECK(features.values == predictor{graph<seen>{}, model}.predict(pixels).values);
  CHECK(joined.values.size() == count * 5);
}

TEST_CASE("many threads use a predictor of an inner node while it takes the weights of a trainer that goes on") {
  auto model = trained();
  const predictor before{graph<seen>{}, model};
  const auto old_features = before.predict(pixels).values;
  auto other = trained();
  other.train_step(of<left>(of_left), of<right>(of_right), of<picture>(pixels), of<kind>(std::vector<int>(count, 1)),
                   of<box>(boxes));
  const auto new_features = predictor{graph<seen>{}, other}.predict(pixels).values;
  REQUIRE(old_features != new_features);
  std::vector<int> wrong(4);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < wrong.size(); ++t)
      threads.emplace_back([&, t] {
        for (int repeat = 0; repeat < 20; ++repeat) {
          const auto found = before.predict(pixels).values;
          wrong[t] += found != old_features && found != new_features;
        }
      });
    predictor copy = before;
    for (int repeat = 0; repeat < 10; ++repeat) copy.set_parameters(repeat % 2 == 0 ? other : model);
    copy.set_parameters(other);
  }
  for (const int each : wrong) CHECK(each == 0);
  CHECK(before.predict(pixels).values == new_features);
}

TEST_CASE("callbacks predict, evaluate and extract features of a graph in the middle of fit, which stays as it is") {
  const std::vector<int> kinds(count, 1);
  const auto fit = [&](auto& model, auto&&... callbacks) {
    model.fit(of<left>(of_left), of<right>(of_right), of<picture>(pixels), of<kind>(kinds), of<box>(boxes), epochs(2),
              batch_size(10), verbosity::off, callbacks...);
    return std::vector<float>(model.parameters().begin(), model.parameters().end());
  };
  auto plain = trained(), watched = trained();
  std::vector<double> losses;
  std::vector<float> first, last;
  const auto after_batch = [&](training_state&) {
    const auto [of_kind, of_box] = watched.predict(of<left>(of_left), of<right>(of_right), of<picture>(pixels));
    last = of_kind.values;
    if (first.empty()) first = last;
  };
  const auto after_epoch = [&](training_state&) {
    losses.push_back(
        watched.evaluate(of<left>(of_left), of<right>(of_right), of<picture>(pixels), of<kind>(kinds), of<box>(boxes))["loss"]);
    CHECK(predictor{graph<seen>{}, watched}.predict(pixels).size() == count);
  };
  lambda_callback watches{.on_epoch_end = after_epoch, .on_batch_end = after_batch};
  const auto expected = fit(plain);
  CHECK(fit(watched, watches) == expected);
  CHECK(first != last);
  CHECK(losses.at(1) < losses.at(0));
  CHECK(last == std::get<0>(watched.predict(of<left>(of_left), of<right>(of_right), of<picture>(pixels))).values);
}
