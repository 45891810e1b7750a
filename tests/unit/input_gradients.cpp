// Gradients with respect to inputs, of trainers and predictors.
// flags: -ffp-contract=off
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <strata/distribute/mirrored.hpp>
#include <strata/strata.hpp>
#include <strata/train/input_gradients.hpp>
#include <strata/train/predictor.hpp>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <vector>

#include "count_allocations.hpp"
#include "error_of.hpp"
#include "gradient_check.hpp"

using namespace strata;
using namespace strata::test;

namespace {
/// Checks gradients against differences of the losses of a model that predicts: `losses(x)` are those of all samples. An element
/// of all samples is changed at a time, because a sample has no effect on another one.
void check_differences(std::vector<double> x, std::size_t count, const std::vector<double>& gradients, const auto& losses,
                       double tolerance = 1e-7) {
  REQUIRE(gradients.size() == x.size());
  const std::size_t size = x.size() / count;
  const double h = 1e-5;
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const auto moved = [&](double by) {
      std::vector<double> other = x;
      for (std::size_t n = 0; n < count; ++n) other[n * size + i] += by;
      return losses(other);
    };
    const std::vector<double> above = moved(h), below = moved(-h);
    for (std::size_t n = 0; n < count; ++n) {
      const double gradient = gradients[n * size + i];
      worst = std::max(worst, std::abs(gradient - (above[n] - below[n]) / (2 * h)));
      largest = std::max(largest, std::abs(gradient));
    }
  }
  CHECK(largest > 1e-4);
  CHECK(worst < tolerance * std::max(1.0, largest));
}

template <class Loss>
std::vector<double> losses_of(const std::vector<double>& predicted, const auto& truth, std::size_t count) {
  const std::size_t size = predicted.size() / count;
  std::vector<double> out;
  for (std::size_t n = 0; n < count; ++n) {
    const std::span<const double> one(predicted.data() + n * size, size);
    if constexpr (Loss::labels == label_kind::sparse)
      out.push_back(Loss::value(one, std::int32_t(truth[n])));
    else
      out.push_back(Loss::value(one, std::span<const double>(truth.data() + n * size, size)));
  }
  return out;
}

/// The gradient of the own loss of a trainer, and that of given gradients of the outputs, for five samples.
template <class Network, class Loss>
void check_network(Network network, Loss loss, const auto& truth, double tolerance = 1e-7) {
  constexpr std::size_t count = 5, out = std::size_t(Network::output_shape.size());
  const std::vector<double> x = random_numbers<double>(count * std::size_t(Network::input_shape.size()), 1);
  trainer model{network, adam{.learning_rate = 0.05}, loss, precision::f64{}};
  model.fit(x, truth, epochs(2), verbosity::off);  // so that moving statistics are not 0 and 1
  const auto predicted = [&](const std::vector<double>& other) { return model.predict(other).values; };
  check_differences(
      x, count, model.gradients(x, truth).values,
      [&](const auto& other) { return losses_of<Loss>(predicted(other), truth, count); }, tolerance);

  const std::vector<double> given = random_numbers<double>(count * out, 2);
  const auto product = model.gradients(x, given, given_gradient{});
  check_differences(
      x, count, product.values, [&](const auto& other) { return losses_of<given_gradient>(predicted(other), given, count); },
      tolerance);

  const predictor alone{network, model};
  CHECK(alone.gradients(x, given, given_gradient{}).values == product.values);
  CHECK(alone.gradients(x, truth, loss).values == model.gradients(x, truth).values);
}

const std::vector<int> five_kinds{0, 1, 2, 1, 0};
const std::vector<double> targets_of_five = random_numbers<double>(10, 9);

struct image : input<6, 6, 2> {};
struct words : input<3> {};
struct other_image : input<6, 6, 2> {};
struct encoder : shared<conv2d<3, 3, tanh_activation>, flatten> {};
struct seen : node<image, encoder> {};
struct also_seen : node<other_image, encoder> {};
struct read : node<words, embedding<7, 2>, flatten, dense<4>> {};
struct both : node<concat<multiply<seen, also_seen>, read>, dense<5, tanh_activation>> {};
struct kind : node<both, dense<3, softmax>> {};
struct box : node<concat<both, branch<image, flatten>>, dense<2>> {};
using net = graph<kind, box>;

struct data_of_graph {
  static constexpr std::size_t count = 6;
  std::vector<double> images = random_numbers<double>(count * 72, 1), others = random_numbers<double>(count * 72, 2),
                      names = std::vector<double>(count * 3), boxes = random_numbers<double>(count * 2, 3);
  std::vector<int> kinds{0, 1, 2, 1, 0, 2};
  data_of_graph() {
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = double(i % 7);
  }
};
auto trained(const data_of_graph& data, const auto&... extra) {
  trainer model{net{},
                adam{},
                compare<kind>(sparse_categorical_crossentropy{}, accuracy{}),
                compare<box>(mean_squared_error{}, loss_weight(0.25)),
                precision::f64{},
                extra...};
  model.train_step(of<image>(data.images), of<words>(data.names), of<other_image>(data.others), of<kind>(data.kinds),
                   of<box>(data.boxes));
  return model;
}
}  // namespace

TEST_CASE("gradients of images agree with differences of the loss") {
  check_network(sequential<input<8, 8, 1>, conv2d<4, 3, tanh_activation>, average_pool2d<2>, flatten, dense<3, softmax>>{},
                sparse_categorical_crossentropy{}, five_kinds);
  check_network(sequential<input<8, 8, 3>, conv2d<4, 3, relu>, max_pool2d<2>, flatten, dense<2>>{}, mean_squared_error{},
                targets_of_five);
  check_network(sequential<input<8, 8, 1>, conv2d<4, 3, same_padding, relu>, max_pool2d<2>, flatten, dense<3>>{},
                sparse_categorical_crossentropy<from_logits>{}, five_kinds);
  check_network(sequential<input<5, 5, 2>, zero_padding2d<1>, depthwise_conv2d<3>, up_sampling2d<2>,
                           conv2d_transpose<3, 2, stride<2>>, global_average_pool2d, dense<2>>{},
                mean_squared_error{}, targets_of_five);
}

TEST_CASE("batch_norm has its moving statistics, and there is no dropout, as in predictions") {
  check_network(sequential<input<6, 6, 2>, conv2d<4, 3>, batch_norm<>, relu, dropout<0.5_r>, flatten, dense<3, softmax>>{},
                sparse_categorical_crossentropy{}, five_kinds);
  check_network(
      sequential<input<4>, dropout<0.3_r>, batch_norm<>, residual<dense<4, tanh_activation>, dropout<0.9_r>>, dense<2>>{},
      mean_squared_error{}, targets_of_five);
  check_network(sequential<input<4>, frozen<dense<6, tanh_activation>, batch_norm<>>, layer_norm<>, dense<2>>{},
                mean_squared_error{}, targets_of_five);
}

TEST_CASE("an input that several branches read has the sum of their gradients") {
  check_network(
      sequential<input<6>, concat<branch<columns<0, 2>, dense<3, tanh_activation>>, branch<columns<3, 2>>, branch<dense<4>>>,
                 normalization, dense<2>>{},
      mean_squared_error{}, targets_of_five);
  check_network(sequential<input<6>, multiply<branch<>, branch<dense<6, sigmoid>>>, dense<2, sigmoid>>{}, binary_crossentropy{},
                std::vector<double>{0, 1, 1, 0, 0, 0, 1, 1, 1, 0});
  check_network(sequential<input<2, 3>, flatten, add<branch<>, branch<>>, dense<2>>{}, huber<>{}, targets_of_five);
}

TEST_CASE("gradients of a graph with respect to several inputs are those of its weighted loss") {
  const data_of_graph data;
  auto model = trained(data);
  const auto both_losses = [&](const std::vector<double>& images, const std::vector<double>& others) {
    const auto [kinds, boxes] = model.predict(of<image>(images), of<words>(data.names), of<other_image>(others));
    std::vector<double> all = losses_of<sparse_categorical_crossentropy<>>(kinds.values, data.kinds, data.count);
    const auto of_box = losses_of<mean_squared_error>(boxes.values, data.boxes, data.count);
    for (std::size_t n = 0; n < all.size(); ++n) all[n] += 0.25 * of_box[n];
    return all;
  };
  const auto [of_others, of_images] = model.gradients<other_image, image>(
      of<box>(data.boxes), of<image>(data.images), of<words>(data.names), of<other_image>(data.others), of<kind>(data.kinds));
  static_assert(std::is_same_v<decltype(of_images), const predictions<double, shape{6, 6, 2}>>);
  check_differences(data.images, data.count, of_images.values, [&](const auto& x) { return both_losses(x, data.others); });
  check_differences(data.others, data.count, of_others.values, [&](const auto& x) { return both_losses(data.images, x); });

  // One input alone, into a span; another weight of a loss.
  std::vector<double> result(data.images.size());
  model.gradients<image>(of<image>(data.images), of<words>(data.names), of<other_image>(data.others), of<kind>(data.kinds),
                         of<box>(data.boxes), result);
  CHECK(result == of_images.values);
  std::vector<double> weights(data.count);
  for (std::size_t n = 0; n < data.count; ++n) weights[n] = double(n);
  const auto weighted =
      model.gradients<image>(of<image>(data.images), of<words>(data.names), of<other_image>(data.others), of<kind>(data.kinds),
                             of<box>(data.boxes), of<kind>(sample_weight(weights)), of<box>(sample_weight(weights)));
  for (std::size_t n = 0; n < data.count; ++n)
    for (std::size_t i = 0; i < 72; ++i)
      CHECK(weighted.row(n)[i] == doctest::Approx(double(n) * of_images.row(n)[i]).epsilon(1e-9));
  model.set_loss_weight<box>(1);
  CHECK(model
            .gradients<image>(of<image>(data.images), of<words>(data.names), of<other_image>(data.others), of<kind>(data.kinds),
                              of<box>(data.boxes))
            .values != result);
}

TEST_CASE("a call may compare some of the outputs, or inner nodes, and needs their inputs only") {
  const data_of_graph data;
  auto model = trained(data);
  const predictor alone{net{}, model};
  const std::vector<double> given = random_numbers<double>(data.count * 48, 5);
  const auto product = model.gradients<image>(of<image>(data.images), of<seen>(given), compare<seen>(given_gradient{}));
  const predictor of_seen{graph<seen>{}, model};
  check_differences(data.images, data.count, product.values,
                    [&](const auto& x) { return losses_of<given_gradient>(of_seen.predict(x).values, given, data.count); });
  CHECK(alone.gradients<image>(of<image>(data.images), of<seen>(given), compare<seen>(given_gradient{})).values ==
        product.values);
  // The weights of the encoder belong to another node in the graph of this call.
  CHECK(alone.gradients<other_image>(of<other_image>(data.images), of<also_seen>(given), compare<also_seen>(given_gradient{}))
            .values == product.values);

  const auto of_kind =
      alone.gradients<image>(of<image>(data.images), of<words>(data.names), of<other_image>(data.others), of<kind>(data.kinds),
                             compare<kind>(sparse_categorical_crossentropy{}, loss_weight(3)));
  check_differences(data.images, data.count, of_kind.values, [&](const auto& x) {
    const auto [kinds, boxes] = model.predict(of<image>(x), of<words>(data.names), of<other_image>(data.others));
    std::vector<double> all = losses_of<sparse_categorical_crossentropy<>>(kinds.values, data.kinds, data.count);
    for (double& each : all) each *= 3;
    return all;
  });
}

TEST_CASE("the Jacobian matrix of a controller, row by row") {
  using controller = sequential<input<4>, dense<16, tanh_activation>, dense<2>>;
  trainer model{controller{}, adam{}, mean_squared_error{}, precision::f64{}};
  const predictor acts{controller{}, model};
  const std::vector<double> state{0.1, -0.2, 0.3, 0.4};
  for (std::size_t row = 0; row < 2; ++row) {
    std::vector<double> direction(2), jacobian(4);
    direction[row] = 1;
    acts.gradients(state, direction, given_gradient{}, jacobian);
    for (std::size_t i = 0; i < 4; ++i) {
      auto above = state, below = state;
      above[i] += 1e-6, below[i] -= 1e-6;
      CHECK(jacobian[i] == doctest::Approx((acts.predict(above).values[row] - acts.predict(below).values[row]) / 2e-6));
    }
  }
}

TEST_CASE("gradients have the same bits with any number of threads, and those of a trainer on any strategy") {
  using cnn = sequential<input<12, 12, 1>, conv2d<8, 3, relu>, max_pool2d<2>, flatten, dense<3, softmax>>;
  const std::vector<float> x = random_numbers<float>(300 * 144, 1);
  std::vector<std::uint8_t> y(300);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::uint8_t(i % 3);
  trainer model{cnn{}, adam{}, sparse_categorical_crossentropy{}};
  const auto expected = model.gradients(x, y).values;
  const predictor one{cnn{}, model}, three{cnn{}, model, precision::f32{}, {.threads = 3}};
  CHECK(one.gradients(x, y, sparse_categorical_crossentropy{}).values == expected);
  CHECK(three.gradients(x, y, sparse_categorical_crossentropy{}).values == expected);
  trainer mirror{cnn{}, adam{}, sparse_categorical_crossentropy{}, mirrored{cpus(2)}};
  CHECK(mirror.gradients(x, y).values == expected);
  CHECK(one.gradients(std::vector<float>(), std::vector<int>(), sparse_categorical_crossentropy{}).size() == 0);

  model.train_step({x.data(), std::vector<std::int32_t>(300, 1).data(), 300});
  CHECK(model.gradients(x, y).values != expected);
}

TEST_CASE("many threads compute gradients of one predictor, without allocation from their second call on") {
  using cnn = sequential<input<8, 8, 1>, conv2d<4, 3, relu>, flatten, dense<3, softmax>>;
  trainer model{cnn{}, adam{}, sparse_categorical_crossentropy{}};
  const std::vector<float> x = random_numbers<float>(20 * 64, 1);
  const std::vector<int> y(20, 1);
  predictor shared_by_all{cnn{}, model};
  const auto expected = model.gradients(x, y).values;
  std::vector<int> wrong(4);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < wrong.size(); ++t)
      threads.emplace_back([&, t] {
        const predictor copy = shared_by_all;
        for (int repeat = 0; repeat < 20; ++repeat)
          wrong[t] += copy.gradients(x, y, sparse_categorical_crossentropy{}).values != expected;
      });
  }
  for (const int each : wrong) CHECK(each == 0);

  std::vector<float> result(x.size());
  const auto call = [&] { shared_by_all.gradients(x, y, sparse_categorical_crossentropy{}, result); };
  call();
#ifndef STRATA_TEST_NEW_IS_TAKEN
  const long before = allocations;
  call();
  CHECK(allocations == before);
#endif
  CHECK(result == expected);

  model.train_step({x.data(), std::vector<std::int32_t>(20, 2).data(), 20});
  shared_by_all.set_parameters(model);
  call();
  CHECK(result == model.gradients(x, y).values);
  CHECK(result != expected);
}

TEST_CASE("sizes that do not match and labels outside the classes are refused") {
  using row = sequential<input<4>, dense<3, softmax>>;
  trainer model{row{}, adam{}, sparse_categorical_crossentropy{}};
  const std::vector<float> x(8);
  std::vector<float> result(7);
  CHECK(error_of([&] { model.gradients(x, std::vector<int>(3)); }) == "gradients: 2 samples of x, but 3 of y");
  CHECK(error_of([&] { model.gradients(std::vector<float>(7), std::vector<int>(2)); }) ==
        "gradients: x has 7 values: not a multiple of 4, and one sample has the shape (4,)");
  CHECK(error_of([&] { model.gradients(x, std::vector<int>(2), result); }) ==
        "gradients: the span for x has 7 elements, but 2 samples need 8");
  CHECK(
      contains(error_of([&] { model.gradients(x, std::vector<int>{0, 3}); }), "has the label 3, but the network has 3 classes"));
  const data_of_graph data;
  auto other = trained(data);
  CHECK(error_of([&] {
          other.gradients<image>(of<image>(data.images), of<seen>(std::vector<double>(48)), compare<seen>(given_gradient{}));
        }) == "gradients: 6 samples of image, but 1 of seen");
  std::vector<double> names(data.names);
  names[4] = 7;
  CHECK(contains(error_of([&] {
                   other.gradients<image>(of<image>(data.images), of<words>(names), of<other_image>(data.others),
                                          of<kind>(data.kinds), of<box>(data.boxes));
                 }),
                 "7 rows"));
}
