// Graphs: their tape, trainer, predictor and shared weights.
// flags: -ffp-contract=off
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <sstream>
#include <strata/callbacks/early_stopping.hpp>
#include <strata/callbacks/lambda_callback.hpp>
#include <strata/data.hpp>
#include <strata/distribute/mirrored.hpp>
#include <strata/interop/onnx/save_onnx.hpp>
#include <strata/program/print_plan.hpp>
#include <strata/strata.hpp>
#include <strata/train/backup_and_restore.hpp>
#include <strata/train/input_gradients.hpp>
#include <strata/train/predictor.hpp>
#include <strata/train/weights_file.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "error_of.hpp"
#include "gradient_check.hpp"
#include "scratch_folder.hpp"
#include "two_by_two.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
// The network of two_by_two, as a graph.
struct numbers : input<6> {};
struct words : input<3> {};
struct of_numbers : node<numbers, dense<5, tanh_activation>> {};
struct of_words : node<words, embedding<7, 2>, flatten, dense<5>> {};
struct trunk : node<add<of_numbers, of_words>> {};
struct kind : node<trunk, dense<3, softmax>> {};
struct place : node<trunk, dense<2>> {};
using net = graph<kind, place>;

using by_hand = program_of_two<false, adam, precision::f32>;

auto with_losses(const auto&... extra) {
  return trainer{net{}, adam{.learning_rate = 0.01}, compare<kind>(sparse_categorical_crossentropy{}, accuracy{}),
                 compare<place>(mean_squared_error{}, mean_absolute_error{}, mean_squared_error{}), extra...};
}
using named = decltype(with_losses())::program_type;
static_assert(graph_program<named> && ends_of_program<named>.input_count == 2 && ends_of_program<named>.outputs[1] == 2);
static_assert(std::is_same_v<named::output_nodes, type_list<kind, place>>);
static_assert(detail::shape_of_end<named, words> == shape{3} && detail::shape_of_end<named, place> == shape{2});

struct data_of_two {
  std::vector<float> x, y, places;
  std::vector<std::int32_t> kinds;

  explicit data_of_two(std::size_t count)
      : x(random_numbers<float>(count * 6, 1)), y(count * 3), places(random_numbers<float>(count * 2, 2)), kinds(count) {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = float(philox{3}(i)[0] % 7);
    for (std::size_t i = 0; i < count; ++i) kinds[i] = std::int32_t(philox{4}(i)[0] % 3);
  }
  samples<float> view() const {
    samples<float> all;
    all.inputs[0] = x.data(), all.inputs[1] = y.data();
    all.truths[0].labels = kinds.data(), all.truths[1].targets = places.data();
    all.count = int(kinds.size());
    return all;
  }
};

std::vector<float> weights_of(const auto& model) { return {model.parameters().begin(), model.parameters().end()}; }

/// A twin network: one encoder for two inputs.
struct left : input<4> {};
struct right : input<4> {};
struct encoder : shared<dense<6, tanh_activation>, dense<3>> {};
struct code_of_left : node<left, encoder> {};
struct code_of_right : node<right, encoder> {};
struct same : node<multiply<code_of_left, code_of_right>, dense<3, softmax>> {};
using twins = graph<same>;
static_assert(layout_of<twins::items>.trainable_count == (4 * 6 + 6) + (6 * 3 + 3) + (3 * 3 + 3));

/// The same numbers of an encoder used three times, with an embedding, in two segments.
struct first_word : input<2> {};
struct second_word : input<2> {};
struct table : shared<embedding<5, 3>, flatten> {};
struct three
    : node<add<branch<first_word, table>, branch<second_word, table>, branch<first_word, table>>, batch_norm<>, dense<4>> {};
struct read_back : node<add<branch<second_word, table>, branch<three, dense<6>>>, dense<2>> {};

/// Shared layers in shared layers, used by themselves first.
struct inner : shared<dense<4, tanh_activation>> {};
struct outer : shared<dense<4>, inner, inner> {};
struct nested : node<add<branch<left, inner>, branch<right, outer>, branch<left, outer>>, dense<3, softmax>> {};
struct only_outer : node<multiply<branch<right, outer>, branch<left, outer>>, dense<3, softmax>> {};
static_assert(layout_of<graph<nested>::items>.trainable_count == 2 * (4 * 4 + 4) + (4 * 3 + 3));
static_assert(layout_of<graph<only_outer>::items>.trainable_count == 2 * (4 * 4 + 4) + (4 * 3 + 3));

struct kind_of_numbers : node<numbers, dense<3, softmax>> {};

/// An output that another output reads, and that the graph names last.
struct first_kind : node<numbers, dense<3, softmax>> {};
struct after_kind : node<first_kind, dense<2>> {};
using in_other_order = graph<after_kind, first_kind>;
auto reports_in_other_order(const auto&... extra) {
  return trainer{in_other_order{}, adam{.learning_rate = 0.01},
                 compare<first_kind>(sparse_categorical_crossentropy{}, accuracy{}, loss_weight(0.5)),
                 compare<after_kind>(mean_squared_error{}, mean_absolute_error{}), extra...};
}

template <class Graph, class... Comparisons>
using checked_program = detail::program_of_graph<Graph, keep_gradient, precision::f64,
                                                 typename detail::in_order_of_nodes<typename Graph::nodes, Comparisons...>::type>;
}  // namespace

TEST_CASE("a graph trains to the bits of the same network recorded by hand") {
  const data_of_two data(46);
  auto model = with_losses(one_device{{.threads = 1, .leaves = 4}}, seed(3));
  synchronous_executor<by_hand, cpu> executor(adam{.learning_rate = 0.01}, 3, {.threads = 1, .leaves = 4});
  executor.prepare(46, purpose::training);
  REQUIRE(std::ranges::equal(executor.parameters(), model.parameters()));
  for (int step = 0; step < 3; ++step) {
    const metric_sums<by_hand> expected = executor.train_step(data.view());
    const auto sums = model.train_step(of<words>(data.y), of<place>(data.places), of<numbers>(data.x), of<kind>(data.kinds));
    for (std::size_t k = 0; k < sums.size(); ++k) CHECK(sums[k].sum == expected[k].sum);
  }
  CHECK(std::ranges::equal(executor.parameters(), model.parameters()));

  std::vector<float> kinds(46 * 3), places(46 * 2);
  output_rows<float> to;
  to.at[0] = kinds.data(), to.at[1] = places.data();
  executor.predict(data.view(), to);
  const auto [of_kind, of_place] = model.predict(of<words>(data.y), of<numbers>(data.x));
  CHECK(of_kind.values == kinds);
  CHECK(of_place.values == places);
  const predictor alone{net{}, model.parameters()};
  alone.prepare(10);
  const auto [kind_alone, place_alone] = alone.predict(of<numbers>(data.x), of<words>(data.y));
  CHECK(kind_alone.values == kinds);
  CHECK(place_alone.values == places);
}

TEST_CASE("any number of threads trains a graph to the same bits, from arrays and from a data set") {
  const data_of_two data(50);
  const auto trained = [&](const auto& strategy) {
    auto model = with_losses(strategy);
    model.fit(of<numbers>(data.x), of<words>(data.y), of<kind>(data.kinds), of<place>(data.places), epochs(3), batch_size(16),
              verbosity::off);
    return weights_of(model);
  };
  const std::vector<float> expected = trained(one_device{{.threads = 1, .leaves = 4}});
  CHECK(trained(one_device{{.threads = 3, .leaves = 4}}) == expected);
  CHECK(trained(mirrored{cpus(3), {.leaves = 4}}) == expected);

  const auto in_order = [&](auto&& fit) {
    auto model = with_losses();
    fit(model);
    return weights_of(model);
  };
  const auto set =
      data::from_tensor_slices(of<place>(data::array<float, shape{2}>(std::span<const float>(data.places))),
                               of<words>(data::array<float, shape{3}>(std::span<const float>(data.y))), of<kind>(data.kinds),
                               of<numbers>(data::array<float, shape{6}>(std::span<const float>(data.x))));
  CHECK(in_order([&](auto& model) { model.fit(set | data::batch<16>, epochs(2), verbosity::off); }) == in_order([&](auto& model) {
          model.fit(of<numbers>(data.x), of<words>(data.y), of<kind>(data.kinds), of<place>(data.places), shuffle(false),
                    epochs(2), batch_size(16), verbosity::off);
        }));
  auto model = with_losses();
  const auto [one, two] = model.predict(set | data::batch<16>);
  const auto [first, second] = model.predict(of<numbers>(data.x), of<words>(data.y));
  CHECK(one.values == first.values);
  CHECK(two.values == second.values);
}

TEST_CASE("history and evaluation name the losses and the metrics of each output as Keras does") {
  const data_of_two data(50);
  auto model = with_losses();
  const auto past = model.fit(of<numbers>(data.x), of<words>(data.y), of<kind>(data.kinds), of<place>(data.places), epochs(2),
                              validation_split(0.2), verbosity::off);
  for (const char* name : {"loss", "kind_loss", "place_loss", "kind_accuracy", "place_mean_absolute_error",
                           "place_mean_squared_error", "val_loss", "val_kind_loss", "val_kind_accuracy"})
    CHECK(past[name].size() == 2);
  const auto [loss, of_kind, of_place, right, distance, square] =
      model.evaluate(of<place>(data.places), of<numbers>(data.x), of<words>(data.y), of<kind>(data.kinds));
  CHECK(loss == doctest::Approx(of_kind + of_place));
  CHECK(square == doctest::Approx(of_place));
  CHECK(right <= 1);
  CHECK(distance > 0);
}

TEST_CASE("columns of arrays validate, with columns of arrays and with a data set to train on") {
  const data_of_two data(50), held_back(21);
  const auto set = [](const data_of_two& from) {
    return data::from_tensor_slices(of<place>(data::array<float, shape{2}>(std::span<const float>(from.places))),
                                    of<words>(data::array<float, shape{3}>(std::span<const float>(from.y))), of<kind>(from.kinds),
                                    of<numbers>(data::array<float, shape{6}>(std::span<const float>(from.x))));
  };
  const auto fit = [&](auto&&... options) {
    auto model = with_losses();
    const auto past = model.fit(of<numbers>(data.x), of<words>(data.y), of<kind>(data.kinds), of<place>(data.places), epochs(2),
                                batch_size(16), verbosity::off, options...);
    std::vector<double> values;
    for (const char* name : {"val_loss", "val_kind_loss", "val_kind_accuracy", "val_place_mean_absolute_error"})
      for (const double value : past[name]) values.push_back(value);
    return values;
  };
  const auto expected = fit(validation(set(held_back) | data::batch<16>));
  CHECK(fit(validation(of<kind>(held_back.kinds), of<numbers>(held_back.x), of<words>(held_back.y),
                       of<place>(held_back.places))) == expected);
  CHECK(fit(validation(of<kind>(std::vector(held_back.kinds)), of<numbers>(std::vector(held_back.x)), of<words>(held_back.y),
                       of<place>(std::vector(held_back.places)))) == expected);

  auto model = with_losses();
  const auto past = model.fit(
      set(data) | data::batch<16>, verbosity::off,
      validation(of<kind>(held_back.kinds), of<numbers>(held_back.x), of<words>(held_back.y), of<place>(held_back.places)));
  const auto values = model.evaluate(of<numbers>(held_back.x), of<words>(held_back.y), of<kind>(held_back.kinds),
                                     of<place>(held_back.places), batch_size(16));
  CHECK(past["val_loss"][0] == values["loss"]);

  auto one = trainer{graph<kind_of_numbers>{}, adam{}, compare<kind_of_numbers>(sparse_categorical_crossentropy{})};
  CHECK(one.fit(of<numbers>(data.x), of<kind_of_numbers>(data.kinds), verbosity::off,
                validation(of<numbers>(held_back.x), of<kind_of_numbers>(held_back.kinds)))
            .contains("val_loss"));
  const auto of_columns = [&](const auto& x) {
    return error_of([&] { fit(validation(of<numbers>(x), of<words>(data.y), of<kind>(data.kinds), of<place>(data.places))); });
  };
  CHECK(of_columns(std::vector<float>(49 * 6)) == "from_tensor_slices: 49 samples of numbers, but 50 of words");
  CHECK(of_columns(std::vector<float>(49)) ==
        "validation: numbers has 49 values: not a multiple of 6, and one sample has the shape (6,)");
}

TEST_CASE("an output that another one reads is reported in the order of the graph") {
  const data_of_two data(50);
  auto model = reports_in_other_order();
  const auto [loss, of_after, of_first, distance, right] =
      model.evaluate(of<numbers>(data.x), of<first_kind>(data.kinds), of<after_kind>(data.places));
  CHECK(loss == doctest::Approx(of_after + 0.5 * of_first));
  CHECK(right <= 1);
  const auto values = model.evaluate(of<numbers>(data.x), of<first_kind>(data.kinds), of<after_kind>(data.places));
  CHECK(values["after_kind_loss"] == of_after);
  CHECK(values["first_kind_loss"] == of_first);
  CHECK(values["after_kind_mean_absolute_error"] == distance);
  CHECK(values["first_kind_accuracy"] == right);
  auto other = reports_in_other_order();
  const auto sums = other.train_step(of<numbers>(data.x), of<first_kind>(data.kinds), of<after_kind>(data.places));
  const double expected[] = {loss, of_after, of_first, distance, right};
  for (std::size_t k = 0; k < sums.size(); ++k) CHECK(sums[k].sum / double(sums[k].count) == doctest::Approx(expected[k]));
  const auto past =
      model.fit(of<numbers>(data.x), of<first_kind>(data.kinds), of<after_kind>(data.places), batch_size(50), verbosity::off);
  CHECK(past["first_kind_loss"][0] == doctest::Approx(of_first));
  CHECK(past["first_kind_accuracy"][0] == doctest::Approx(right));
}

TEST_CASE("the weight of a loss multiplies it and its gradient; the loss of the output is reported without it") {
  const data_of_two data(40);
  const auto columns = [&](auto&& f) {
    return f(of<numbers>(data.x), of<words>(data.y), of<kind>(data.kinds), of<place>(data.places));
  };
  const auto model_with = [&](double of_kind, double of_place) {
    return trainer{net{}, sgd{.learning_rate = 0.1}, compare<kind>(sparse_categorical_crossentropy{}, loss_weight(of_kind)),
                   compare<place>(mean_squared_error{}, loss_weight(of_place))};
  };
  auto plain = model_with(1, 1), weighted = model_with(1, 0.25), both = model_with(2, 0.5);
  const auto values = columns([&](const auto&... c) { return plain.evaluate(c...); });
  const auto fewer = columns([&](const auto&... c) { return weighted.evaluate(c...); });
  CHECK(fewer["place_loss"] == values["place_loss"]);
  CHECK(fewer["kind_loss"] == values["kind_loss"]);
  CHECK(fewer["loss"] == doctest::Approx(values["kind_loss"] + 0.25 * values["place_loss"]));

  // Twice the loss with half the learning rate is the same update.
  both.set_learning_rate(0.05);
  columns([&](const auto&... c) { return weighted.train_step(c...); });
  columns([&](const auto&... c) { return both.train_step(c...); });
  double largest = 0;
  for (std::size_t i = 0; i < both.parameters().size(); ++i)
    largest = std::max(largest, std::abs(double(both.parameters()[i]) - double(weighted.parameters()[i])));
  CHECK(largest < 1e-6);
  plain.set_loss_weight<place>(0.25);
  CHECK(plain.loss_weight_of<place>() == 0.25);
  columns([&](const auto&... c) { return plain.train_step(c...); });
  CHECK(weights_of(plain) == weights_of(weighted));
  CHECK(error_of([&] { plain.set_loss_weight<kind>(-1); }) == "loss_weight(-1): it must be finite and at least 0");
}

TEST_CASE("the gradient is that of the loss with its weights, of which one may be 0") {
  const data_of_two data(40);
  const auto columns = [&](auto&& f) {
    return f(of<numbers>(data.x), of<words>(data.y), of<kind>(data.kinds), of<place>(data.places));
  };
  const auto check = [&](double of_kind, double of_place, const auto& strategy) {
    CAPTURE(of_kind);
    CAPTURE(of_place);
    trainer model{net{},
                  sgd{.learning_rate = 0.5},
                  compare<kind>(sparse_categorical_crossentropy{}, loss_weight(of_kind)),
                  compare<place>(mean_squared_error{}, loss_weight(of_place)),
                  precision::f64{},
                  strategy};
    std::vector<double> before(model.parameters().begin(), model.parameters().end());
    const auto sums = columns([&](const auto&... c) { return model.train_step(c...); });
    CHECK(sums[0].sum == doctest::Approx(of_kind * sums[1].sum + of_place * sums[2].sum));
    CHECK(sums[2].mean() > 0);
    const std::vector<double> after(model.parameters().begin(), model.parameters().end());
    double worst = 0, largest = 0;
    for (std::size_t i = 0; i < before.size(); i += 3) {
      double loss[2];
      for (const int sign : {0, 1}) {
        std::vector<double> moved = before;
        moved[i] += sign ? 1e-5 : -1e-5;
        model.set_parameters(moved);
        loss[sign] = columns([&](const auto&... c) { return model.evaluate(c...); })["loss"];
      }
      const double slope = (loss[1] - loss[0]) / 2e-5, gradient = (before[i] - after[i]) / 0.5;
      worst = std::max(worst, std::abs(slope - gradient)), largest = std::max(largest, std::abs(slope));
    }
    CHECK(worst < 1e-8 * std::max(1.0, largest));
    CHECK(largest > 1e-3);
  };
  for (const double factor : {0.0, 0.25, 3.0}) check(1, factor, one_device{{.threads = 2, .leaves = 4}});
  check(0, 1, one_device{{.threads = 1, .leaves = 1}});
}

namespace {
/// Two outputs that nothing is compared with: one that another output reads, and one by itself.
struct hint : node<trunk, dense<4>> {};
struct from_hint : node<hint, dense<3, softmax>> {};
struct aside : node<of_numbers, dense<2, relu>> {};
using with_hints = graph<aside, from_hint, hint, place>;
}  // namespace

TEST_CASE("outputs without a loss are predicted, and change neither the training nor what is reported") {
  const data_of_two data(50);
  const auto train = [&](auto& model, auto&&... more) {
    return model.fit(of<numbers>(data.x), of<words>(data.y), of<from_hint>(data.kinds), more..., epochs(3), batch_size(20),
                     verbosity::off);
  };
  const auto losses_of = [](auto graph_of, auto... more) {
    return trainer{graph_of, sgd{.learning_rate = 0.1}, compare<from_hint>(sparse_categorical_crossentropy{}, accuracy{}),
                   more...};
  };
  const auto of_place = compare<place>(mean_squared_error{}, loss_weight(0.5));
  auto all = losses_of(with_hints{}, of_place);
  auto compared = losses_of(with_hints{}, of_place, compare<hint>(mean_squared_error{}, loss_weight(0)),
                            compare<aside>(mean_squared_error{}, loss_weight(0)));
  const std::vector<float> before = weights_of(all), zeros(50 * 4);
  const auto past = train(all, of<place>(data.places)),
             expected = train(compared, of<place>(data.places), of<hint>(zeros), of<aside>(std::span(zeros).first(50 * 2)));
  CHECK(weights_of(all) == weights_of(compared));
  for (const char* name : {"loss", "from_hint_loss", "place_loss", "from_hint_accuracy"}) CHECK(past[name] == expected[name]);
  CHECK(!past.contains("hint_loss"));
  CHECK(!past.contains("aside_loss"));
  const auto [of_aside, of_from_hint, of_hint, of_places] = all.predict(of<numbers>(data.x), of<words>(data.y));
  const auto [aside_compared, from_hint_compared, hint_compared, places_compared] =
      compared.predict(of<numbers>(data.x), of<words>(data.y));
  CHECK(of_aside.values == aside_compared.values);
  CHECK(of_from_hint.values == from_hint_compared.values);
  CHECK(of_hint.values == hint_compared.values);
  CHECK(of_places.values == places_compared.values);
  const auto gradients_of = [&](auto& model, auto&&... more) {
    return model.template gradients<numbers>(of<numbers>(data.x), of<words>(data.y), of<from_hint>(data.kinds),
                                             of<place>(data.places), more...);
  };
  CHECK(gradients_of(all).values == gradients_of(compared, of<hint>(zeros), of<aside>(std::span(zeros).first(50 * 2))).values);
  // Weights that reach no loss stay as they are.
  const auto names = parameter_names_of<with_hints>();
  long same = 0, changed = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& slot = layout_of<with_hints::items>.slots[i];
    const bool is_equal = std::equal(before.begin() + slot.offset, before.begin() + slot.offset + slot.what.extents.size(),
                                     all.parameters().begin() + slot.offset);
    (is_equal ? same : changed) += slot.what.extents.size();
  }
  CHECK(same == 5 * 2 + 2);

  // A single loss has no name of its own, as in Keras.
  auto one = losses_of(graph<from_hint, hint>{});
  const auto [loss, right] = one.evaluate(of<numbers>(data.x), of<words>(data.y), of<from_hint>(data.kinds));
  CHECK(right <= 1);
  const auto sums = one.train_step(of<numbers>(data.x), of<words>(data.y), of<from_hint>(data.kinds));
  CHECK(sums[0].mean() == loss);
  CHECK(sums[1].mean() == right);
  one.set_loss_weight<from_hint>(0.5);
  CHECK(one.evaluate(of<numbers>(data.x), of<words>(data.y), of<from_hint>(data.kinds))["loss"] != loss);
  const auto alone = train(one);
  CHECK(alone.contains("from_hint_accuracy"));
  CHECK(!alone.contains("from_hint_loss"));
  std::ostringstream plan;
  print_plan(one, plan);
  CHECK(contains(plan.str(), "predicted_only"));
}

namespace {
/// A variational autoencoder whose noise is an input.
struct noise : input<2> {};
struct seen : node<numbers, dense<5, tanh_activation>> {};
struct mean : node<seen, dense<2>> {};
struct deviation : node<seen, dense<2, softplus>> {};
struct latent : node<concat<mean, deviation>> {};
struct drawn : node<add<mean, multiply<deviation, noise>>> {};
struct decoded : node<drawn, dense<6>> {};
using autoencoder = graph<decoded, latent>;

/// The squared distance of two nodes.
struct gap : node<subtract<code_of_left, code_of_right>> {};
struct far : node<multiply<gap, gap>> {};
}  // namespace

TEST_CASE("losses without truth: values") {
  const auto of_code = [](std::array<double, 4> code) { return kl_of_normal::value(std::span<const double>(code), no_truth()); };
  CHECK(of_code({0, 0, 1, 1}) == 0);
  CHECK(of_code({1, 0, 1, 1}) == 0.5);
  CHECK(of_code({0, -2, 1, 3}) == doctest::Approx(2 + 4 - std::log(3.0)));
  CHECK(std::isfinite(of_code({0, 0, 0, 1})));
  static_assert(mean_of_values::value(std::span<const double>(std::array{1.0, 2.0, 6.0}), no_truth()) == 3);
  static_assert(kl_of_normal::output_shape(shape{4}).value == shape{4});
  static_assert(kl_of_normal::output_shape(shape{3}).refused && kl_of_normal::output_shape(shape{2, 2}).refused);
}

TEST_CASE_TEMPLATE("the gradients of losses without truth, of one node and between two", Backend, reference, cpu) {
  const std::vector<double> x = random_numbers<double>(9 * 6, 1), drawn_noise = random_numbers<double>(9 * 2, 2);
  samples<double> batch;
  batch.inputs[0] = x.data(), batch.inputs[1] = drawn_noise.data(), batch.truths[0].targets = x.data(), batch.count = 9;
  using vae = checked_program<autoencoder, comparison<decoded, mean_squared_error, type_list<>>,
                              comparison<latent, kl_of_normal, type_list<>>>;
  static_assert(std::is_same_v<vae::output_nodes, type_list<decoded, latent>>);
  check_gradients_of<vae, Backend>(batch);

  const std::vector<double> a = random_numbers<double>(9 * 4, 1), b = random_numbers<double>(9 * 4, 2);
  samples<double> two;
  two.inputs[0] = a.data(), two.inputs[1] = b.data(), two.count = 9;
  check_gradients_of<checked_program<graph<far>, comparison<far, mean_of_values, type_list<>>>, Backend>(two);
}

TEST_CASE("a variational autoencoder trains with a loss that needs no column, and two nodes come closer") {
  const data_of_two data(60);
  const std::vector<float> noises = random_numbers<float>(60 * 2, 5);
  const auto train = [&](const auto& strategy) {
    trainer model{autoencoder{}, adam{.learning_rate = 0.01}, compare<latent>(kl_of_normal{}, loss_weight(0.01)),
                  compare<decoded>(mean_squared_error{}), strategy};
    const auto past = model.fit(of<numbers>(data.x), of<noise>(noises), of<decoded>(data.x), epochs(60), verbosity::off);
    CHECK(past["decoded_loss"].back() < 0.8 * past["decoded_loss"].front());
    CHECK(past["latent_loss"].back() > 0);
    CHECK(past["loss"].back() == doctest::Approx(past["decoded_loss"].back() + 0.01 * past["latent_loss"].back()));
    return weights_of(model);
  };
  CHECK(train(one_device{{.threads = 1}}) == train(one_device{{.threads = 3}}));

  const std::vector<float> a = random_numbers<float>(60 * 4, 1), b = random_numbers<float>(60 * 4, 2);
  trainer closer{graph<far>{}, adam{.learning_rate = 0.01}, compare<far>(mean_of_values{})};
  const auto past = closer.fit(of<left>(a), of<right>(b), epochs(20), verbosity::off);
  CHECK(past["loss"].back() < 0.5 * past["loss"].front());
}

TEST_CASE("the samples and the classes of each output have weights of their own") {
  const data_of_two data(46);
  std::vector<float> of_kinds, of_places, of_classes;
  for (std::size_t i = 0; i < 46; ++i) {
    of_kinds.push_back(float(i % 4)), of_places.push_back(0.5f * float(i % 3));
    of_classes.push_back(data.kinds[i] == 1 ? 3 : data.kinds[i] == 2 ? 0.25f : 1);
  }
  // The steps of the same network recorded by hand, whose batches have the weights.
  synchronous_executor<by_hand, cpu> executor(adam{.learning_rate = 0.01}, 3, {.threads = 1, .leaves = 4});
  executor.prepare(46, purpose::training);
  samples<float> batch = data.view();
  batch.truths[0].weights = of_kinds.data(), batch.truths[1].weights = of_places.data();
  auto model = with_losses(one_device{{.threads = 1, .leaves = 4}}, seed(3));
  for (int step = 0; step < 2; ++step) {
    const metric_sums<by_hand> expected = executor.train_step(batch);
    const auto sums =
        model.train_step(of<words>(data.y), of<place>(data.places), of<numbers>(data.x), of<kind>(data.kinds),
                         of<place>(sample_weight(of_places)), of<kind>(sample_weight(std::span<const float>(of_kinds))));
    for (std::size_t k = 0; k < sums.size(); ++k) CHECK(sums[k].sum == expected[k].sum);
  }
  CHECK(std::ranges::equal(executor.parameters(), model.parameters()));

  const auto fit = [&](auto& trained, const auto&... more) {
    return trained.fit(of<numbers>(data.x), of<words>(data.y), of<kind>(data.kinds), of<place>(data.places), more..., epochs(3),
                       batch_size(10), verbosity::off);
  };
  auto by_samples = with_losses(seed(3)), by_classes = with_losses(seed(3)), plain = with_losses(seed(3));
  by_samples.set_loss_weight<kind>(0.5), by_classes.set_loss_weight<kind>(0.5), plain.set_loss_weight<kind>(0.5);
  const auto past = fit(by_samples, of<kind>(sample_weight(of_classes)), validation_split(0.2)),
             same = fit(by_classes, of<kind>(class_weight{{1, 3.0}, {2, 0.25}}), validation_split(0.2));
  fit(plain, validation_split(0.2));
  CHECK(weights_of(by_samples) == weights_of(by_classes));
  CHECK(weights_of(by_samples) != weights_of(plain));
  CHECK(past["kind_loss"] == same["kind_loss"]);
  CHECK(past["val_place_loss"] == same["val_place_loss"]);
  CHECK(past["val_kind_loss"] != same["val_kind_loss"]);  // validation has the weights of samples, and none of classes
  const auto values = plain.evaluate(of<numbers>(data.x), of<words>(data.y), of<kind>(data.kinds), of<place>(data.places),
                                     of<kind>(sample_weight(std::vector<float>(46, 2))));
  const auto once = plain.evaluate(of<numbers>(data.x), of<words>(data.y), of<kind>(data.kinds), of<place>(data.places));
  CHECK(values["kind_loss"] == doctest::Approx(2 * once["kind_loss"]));
  CHECK(values["place_loss"] == once["place_loss"]);
  CHECK(values["loss"] == doctest::Approx(0.5 * values["kind_loss"] + values["place_loss"]));

  // Weights are a column of a data set, so every view has them.
  const auto rows = [](const std::vector<float>& of) { return data::array<float, shape{1}>(std::span<const float>(of)); };
  const auto set = data::from_tensor_slices(of<numbers>(data::array<float, shape{6}>(std::span<const float>(data.x))),
                                            of<kind>(data.kinds), of<kind>(sample_weight(rows(of_classes))),
                                            of<words>(data::array<float, shape{3}>(std::span<const float>(data.y))),
                                            of<place>(data::array<float, shape{2}>(std::span<const float>(data.places))));
  auto on_set = with_losses(seed(3)), on_arrays = with_losses(seed(3));
  on_set.fit(set | data::skip(6) | data::batch<10>, epochs(2), verbosity::off);
  const std::size_t kept = 40;
  const auto last = [&](const auto& all) { return std::span(all).last(all.size() / 46 * kept); };
  on_arrays.fit(of<numbers>(last(data.x)), of<words>(last(data.y)), of<kind>(last(data.kinds)), of<place>(last(data.places)),
                of<kind>(sample_weight(last(of_classes))), shuffle(false), batch_size(10), epochs(2), verbosity::off);
  CHECK(weights_of(on_set) == weights_of(on_arrays));
  const auto [kinds_of_set, places_of_set] = on_set.predict(set | data::batch<10>);
  CHECK(kinds_of_set.size() == 46);

  CHECK(error_of([&] { fit(plain, of<kind>(sample_weight(std::vector<float>(45)))); }) ==
        "from_tensor_slices: 46 samples of numbers, but 45 of sample_weight of kind");
  CHECK(error_of([&] { fit(plain, of<kind>(sample_weight(std::vector<float>(46, NAN)))); }) ==
        "sample_weight: the weight of sample 0 is nan");
  CHECK(error_of([&] { fit(plain, of<kind>(class_weight{{3, 1.0}})); }) ==
        "class_weight: there is no class 3: classes are 0 to 2");
  CHECK(error_of([&] { fit(plain, of<kind>(class_weight{{1, 1.0}}), of<kind>(sample_weight(of_kinds))); }) ==
        "fit: the batches have weights for kind, so they cannot have those of classes, too");
  CHECK(error_of([&] {
          plain.fit(set | data::sample_weight([](const auto&) { return 1.0; }) | data::batch<10>, verbosity::off);
        }) == "the samples have weights already for kind, so of<...>(sample_weight(...)) cannot set them, too");
}

TEST_CASE("columns of different lengths and values that do not make whole samples are refused") {
  data_of_two data(40);
  auto model = with_losses();
  data.kinds.pop_back();
  CHECK(error_of([&] {
          model.fit(of<numbers>(data.x), of<words>(data.y), of<kind>(data.kinds), of<place>(data.places), verbosity::off);
        }) == "from_tensor_slices: 40 samples of numbers, but 39 of kind");
  data.y.resize(39 * 3);
  CHECK(error_of([&] { model.predict(of<numbers>(data.x), of<words>(data.y)); }) ==
        "predict: 40 samples of numbers, but 39 of words");
  data.y.pop_back();
  CHECK(error_of([&] { model.predict(of<numbers>(data.x), of<words>(data.y)); }) ==
        "predict: words has 116 values: not a multiple of 3, and one sample has the shape (3,)");
  data.y = std::vector<float>(40 * 3, 7);
  CHECK(contains(error_of([&] { model.predict(of<numbers>(data.x), of<words>(data.y)); }), "embedding has 7 rows"));
}

TEST_CASE("errors about a batch name the input or the output") {
  data_of_two data(40);
  auto model = with_losses();
  const auto fit = [&] {
    return error_of([&] {
      model.fit(of<numbers>(data.x), of<words>(data.y), of<kind>(data.kinds), of<place>(data.places), shuffle(false),
                verbosity::off);
    });
  };
  samples<float> batch = data.view();
  batch.inputs[1] = nullptr;
  CHECK(error_of([&] { model.train_step(batch); }) == "the batch has no inputs for words");
  batch = data.view(), batch.truths[0].labels = nullptr;
  CHECK(error_of([&] { model.train_step(batch); }) == "the batch has no labels for kind, which the loss needs");
  batch = data.view(), batch.truths[1].targets = nullptr;
  CHECK(error_of([&] { model.train_step(batch); }) == "the batch has no targets for place, which the loss needs");
  data.kinds[7] = 3;
  CHECK(contains(fit(), "sample 7 has the label 3 for kind, but the network has 3 classes"));
  data.kinds[7] = 1, data.places[5] = NAN;
  CHECK(contains(fit(), "element 1 of the target for place of sample 2 is nan"));
  data.places[5] = 0, data.x[13] = INFINITY;
  CHECK(contains(fit(), "element 1 of the input for numbers of sample 2 is inf"));
}

TEST_CASE("a graph of one input and one output is a network like any other") {
  struct x : input<6> {};
  struct y : node<x, dense<5, tanh_activation>, dense<2>> {};
  using row = sequential<input<6>, dense<5, tanh_activation>, dense<2>>;
  const data_of_two data(40);
  trainer as_graph{graph<y>{}, adam{}, mean_squared_error{}};
  trainer as_row{row{}, adam{}, mean_squared_error{}};
  trainer compared{graph<y>{}, adam{}, compare<y>(mean_squared_error{})};
  as_graph.fit(data.x, data.places, epochs(2), verbosity::off);
  as_row.fit(data.x, data.places, epochs(2), verbosity::off);
  const auto past = compared.fit(of<x>(data.x), of<y>(data.places), epochs(2), verbosity::off);
  CHECK(weights_of(as_graph) == weights_of(as_row));
  CHECK(weights_of(compared) == weights_of(as_row));
  CHECK(past.contains("loss"));
  CHECK(compared.predict(of<x>(data.x)).values == as_row.predict(data.x).values);
  const predictor alone{graph<y>{}, as_row.parameters()};
  CHECK(alone.predict(data.x).values == as_row.predict(data.x).values);
}

TEST_CASE_TEMPLATE("the gradient of shared weights is the sum over their uses", Backend, reference, cpu) {
  const std::vector<double> a = random_numbers<double>(9 * 4, 1), b = random_numbers<double>(9 * 4, 2);
  std::vector<std::int32_t> y(9);
  for (int i = 0; i < 9; ++i) y[std::size_t(i)] = i % 3;
  samples<double> batch;
  batch.inputs[0] = a.data(), batch.inputs[1] = b.data(), batch.truths[0].labels = y.data(), batch.count = 9;
  check_gradients_of<checked_program<twins, comparison<same, sparse_categorical_crossentropy<>, type_list<>>>, Backend>(batch);
}

TEST_CASE_TEMPLATE("shared layers may have shared layers", Backend, reference, cpu) {
  const std::vector<double> a = random_numbers<double>(9 * 4, 1), b = random_numbers<double>(9 * 4, 2);
  std::vector<std::int32_t> y(9);
  for (int i = 0; i < 9; ++i) y[std::size_t(i)] = i % 3;
  samples<double> batch;
  batch.inputs[0] = a.data(), batch.inputs[1] = b.data(), batch.truths[0].labels = y.data(), batch.count = 9;
  const auto check = [&]<class Node>(std::type_identity<Node>) {
    check_gradients_of<checked_program<graph<Node>, comparison<Node, sparse_categorical_crossentropy<>, type_list<>>>, Backend>(
        batch);
  };
  check(std::type_identity<nested>());
  check(std::type_identity<only_outer>());
}

TEST_CASE_TEMPLATE("a shared table is read by several inputs, also around a batch_norm", Backend, reference, cpu) {
  std::vector<double> a(12 * 2), b(12 * 2);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = double(philox{5}(i)[0] % 5), b[i] = double(philox{6}(i)[0] % 5);
  const std::vector<double> three_of = random_numbers<double>(12 * 4, 3), back = random_numbers<double>(12 * 2, 4);
  samples<double> batch;
  batch.inputs[0] = a.data(), batch.inputs[1] = b.data(), batch.count = 12;
  batch.truths[0].targets = three_of.data(), batch.truths[1].targets = back.data();
  using program = checked_program<graph<three, read_back>, comparison<three, mean_squared_error, type_list<>>,
                                  comparison<read_back, mean_squared_error, type_list<>>>;
  static_assert(layout_of_program<program>.slots[0].what.extents == shape{5, 3});
  check_gradients_of<program, Backend>(batch, 6, 1e-5);  // a batch_norm makes differences less precise

  static_assert(row_tables_of_program<program>.size() == 4);
  b[7] = 5;
  CHECK(contains(error_of([&] { refuse_other_rows<program>(batch, {0, 12}); }), "sample 3 has the number 5 in element 1"));
}

TEST_CASE("shared weights train to the same bits with any number of threads, and appear once in the summary") {
  const std::vector<float> a = random_numbers<float>(60 * 4, 1), b = random_numbers<float>(60 * 4, 2);
  std::vector<int> y(60);
  for (int i = 0; i < 60; ++i) y[std::size_t(i)] = i % 3;
  const auto trained = [&](const auto& strategy) {
    trainer model{twins{}, adam{}, compare<same>(sparse_categorical_crossentropy{}, accuracy{}), strategy};
    model.fit(of<left>(a), of<right>(b), of<same>(y), epochs(3), verbosity::off);
    return weights_of(model);
  };
  const std::vector<float> expected = trained(one_device{{.threads = 1}});
  CHECK(trained(one_device{{.threads = 3}}) == expected);
  CHECK(trained(mirrored{cpus(3)}) == expected);
  // One leaf in one micro-batch on one thread: the update must wait for the last use.
  CHECK(trained(one_device{{.threads = 1, .leaves = 1}}) == trained(one_device{{.threads = 3, .leaves = 1}}));

  trainer model{twins{}, adam{}, compare<same>(sparse_categorical_crossentropy{}, accuracy{})};
  const std::string table = summary(model);
  CHECK(contains(table, "left[0][0], right[0][0]"));
  CHECK(contains(table, "code_of_left/dense (Dense)"));
  CHECK(!contains(table, "dense_3"));
  CHECK(parameter_names_of<twins>() == std::vector<std::string>{"dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias",
                                                                "dense_2/kernel", "dense_2/bias"});
  CHECK(contains(error_of([&] { model.set_trainable("dense", false); }), "a network with shared layers trains all of them"));
}

TEST_CASE("files of weights hold a graph; formats of one input and one output refuse it") {
  const scratch_folder folder("graphs");
  auto model = with_losses(), other = with_losses(seed(9));
  model.save_weights(folder.path / "graph.safetensors");
  other.load_weights(folder.path / "graph.safetensors");
  CHECK(weights_of(other) == weights_of(model));
  CHECK(contains(error_of([&] { save_onnx(model, folder.path / "graph.onnx"); }), "ONNX: a graph of several inputs or outputs"));
  CHECK(contains(error_of([&] { save_onnx(reports_in_other_order(), folder.path / "graph.onnx"); }),
                 "ONNX: a graph of several inputs or outputs"));
}

TEST_CASE("callbacks see the losses of all outputs, and an interrupted training of a graph resumes to the same bits") {
  const data_of_two data(48);
  const auto fit = [&](auto& model, auto&&... callbacks) {
    return model.fit(of<numbers>(data.x), of<words>(data.y), of<kind>(data.kinds), of<place>(data.places), epochs(4),
                     batch_size(16), verbosity::off, callbacks...);
  };
  auto whole = with_losses(), first = with_losses(), second = with_losses();
  fit(whole);
  const scratch_folder folder("graphs_resumed");
  struct power_cut {};
  int values = 0;
  lambda_callback cuts{.on_epoch_end = [&](training_state& s) {
    values += s.values.contains("place_loss");
    if (s.epoch == 1) throw power_cut{};
  }};
  CHECK_THROWS_AS(fit(first, backup_and_restore{folder.path / "backup"}, cuts), power_cut);
  CHECK(values == 2);
  fit(second, backup_and_restore{folder.path / "backup"});
  CHECK(weights_of(second) == weights_of(whole));

  // Weights of losses that change during the training continue, too.
  const auto halves = [](auto& model, int last) {
    return lambda_callback{.on_epoch_end = [&model, last](training_state& s) {
      model.template set_loss_weight<place>(model.template loss_weight_of<place>() / 2);
      if (s.epoch == last) throw power_cut{};
    }};
  };
  auto annealed = with_losses(), stopped = with_losses(), resumed = with_losses();
  fit(annealed, halves(annealed, 9));
  CHECK_THROWS_AS(fit(stopped, backup_and_restore{folder.path / "annealed"}, halves(stopped, 2)), power_cut);
  fit(resumed, backup_and_restore{folder.path / "annealed"}, halves(resumed, 9));
  CHECK(resumed.loss_weight_of<place>() == annealed.loss_weight_of<place>());
  CHECK(weights_of(resumed) == weights_of(annealed));

  early_stopping patient{.monitor = "kind_loss", .patience = 100};
  fit(whole, patient);
  std::ostringstream plan;
  print_plan(whole, plan);
  CHECK(contains(plan.str(), "dense"));
}
