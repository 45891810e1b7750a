// Frozen layers: a training with them has the results of a training of the other layers alone.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <strata/distribute/mirrored.hpp>
#include <strata/optimizers/lamb.hpp>
#include <strata/strata.hpp>
#include <strata/train/copy_weights.hpp>
#include <strata/train/predictor.hpp>
#include <strata/train/transfer_weights.hpp>
#include <strata/train/weights_file.hpp>
#include <string>
#include <vector>

#include "gradient_check.hpp"
#include "scratch_folder.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {

using crossentropy = sparse_categorical_crossentropy<>;

// The lower part of a network with every kind of layer that has weights, alone and frozen.
using lower = sequential<input<8, 8, 3>, conv2d<6, 3, relu, kernel_regularizer<l2<0.3_r>>>, max_pool2d<2>,
                         residual<conv2d<6, 3, same_padding>, layer_norm<>>, flatten, dense<9, tanh_activation>>;
using whole = sequential<input<8, 8, 3>, conv2d<6, 3, relu, kernel_regularizer<l2<0.3_r>>>, max_pool2d<2>,
                         residual<conv2d<6, 3, same_padding>, layer_norm<>>, flatten, dense<9, tanh_activation>,
                         dense<4, relu, kernel_regularizer<l2<0.1_r>>>, dense<3, softmax>>;
using tuned = sequential<input<8, 8, 3>,
                         frozen<conv2d<6, 3, relu, kernel_regularizer<l2<0.3_r>>>, max_pool2d<2>,
                                residual<conv2d<6, 3, same_padding>, layer_norm<>>, flatten, dense<9, tanh_activation>>,
                         dense<4, relu, kernel_regularizer<l2<0.1_r>>>, dense<3, softmax>>;
using upper = sequential<input<9>, dense<4, relu, kernel_regularizer<l2<0.1_r>>>, dense<3, softmax>>;

constexpr int count = 40;
const std::vector<float> x = random_numbers<float>(count * 192, 5);
const std::vector<int> y = [] {
  std::vector<int> labels;
  for (int i = 0; i < count; ++i) labels.push_back(i * i % 3);
  return labels;
}();

template <class Network, class Optimizer = adamw, class... Strategy>
auto make(const Optimizer& optimizer = {.learning_rate = 0.01}, const Strategy&... strategy) {
  return trainer{Network{}, optimizer, crossentropy{}, accuracy{}, strategy...};
}

/// For each parameter, by its slot number: whether the weights of two trainers of the same network differ there.
template <class Network>
std::vector<bool> differing(std::span<const float> a, std::span<const float> b) {
  constexpr const auto& layout = layout_of<typename Network::items>;
  std::vector<bool> out;
  for (int s = 0; s < layout.count; ++s) {
    const auto at = std::size_t(layout.slots[s].offset), size = std::size_t(layout.slots[s].what.extents.size());
    out.push_back(!std::ranges::equal(a.subspan(at, size), b.subspan(at, size)));
  }
  return out;
}

/// Trains `tuned`, and `upper` on the outputs of the frozen layers.
template <class Optimizer, class... Strategy>
void check_against_the_upper_part(const Optimizer& optimizer, const Strategy&... strategy) {
  CAPTURE(Optimizer::name);
  auto model = make<tuned>(optimizer, strategy...);
  auto alone = make<upper>(optimizer, strategy...);
  const std::vector<float> start(model.parameters().begin(), model.parameters().end());
  constexpr auto trainable = std::size_t(layout_of<tuned::items>.trainable);
  static_assert(trainable == layout_of<upper::items>.size);  // in the arena, what is trained comes first
  alone.set_parameters(std::span(start).first(trainable));
  const std::vector<float> features = predictor{lower{}, std::span(start).subspan(trainable)}.predict(x).values;
  const training_history past = model.fit(x, y, epochs(3), batch_size(16), verbose::off);
  const training_history of_upper = alone.fit(features, y, epochs(3), batch_size(16), verbose::off);
  CHECK(past["loss"] == of_upper["loss"]);
  CHECK(past["accuracy"] == of_upper["accuracy"]);
  CHECK(std::ranges::equal(model.parameters().first(trainable), alone.parameters()));
  CHECK(std::ranges::equal(model.parameters().subspan(trainable), std::span(start).subspan(trainable)));
}

// batch_norm and dropout, below and between trained layers.
using normalized =
    sequential<input<8, 8, 3>, frozen<conv2d<5, 3, no_bias>, batch_norm<>, activation<relu>>, conv2d<4, 3>,
               frozen<batch_norm<no_scale>, activation<elu<>>, batch_norm<no_center>, batch_norm<no_scale, no_center>>,
               batch_norm<>, flatten, dropout<0.1_r>, frozen<dense<6, sigmoid>>, dense<3, softmax>>;
/// A segment without trainable parameters; only its statistics change.
using nothing_below =
    sequential<input<8, 8, 3>, frozen<conv2d<5, 3>>, batch_norm<no_scale, no_center>, flatten, dense<3, softmax>>;

}  // namespace

TEST_CASE("a training with frozen layers has the bits of one of the other layers on what those make") {
  const one_device few{{.threads = 1, .leaves = 2}};
  check_against_the_upper_part(adamw{.learning_rate = 0.01, .weight_decay = 0.1, .global_clipnorm = 0.5}, few);
  check_against_the_upper_part(sgd{.learning_rate = 0.1, .momentum = 0.9, .clipnorm = 0.3}, few);
  check_against_the_upper_part(lamb{.learning_rate = 0.01}, few);
  check_against_the_upper_part(adam{.learning_rate = 0.01}, one_device{{.threads = 1, .leaves = 1}});  // updated at once
}

TEST_CASE("what is frozen stays as it is, moving statistics too, for any number of threads and replicas") {
  auto model = make<normalized>(adamw{.learning_rate = 0.01}, one_device{{.threads = 1, .leaves = 4}});
  auto many = make<normalized>(adamw{.learning_rate = 0.01}, mirrored{cpus(3), {.leaves = 4}});
  const std::vector<float> start(model.parameters().begin(), model.parameters().end());
  const training_history past = model.fit(x, y, epochs(6), verbose::off);
  CHECK(past["loss"].back() < past["loss"].front());
  constexpr const auto& layout = layout_of<normalized::items>;
  const std::vector<bool> moved = differing<normalized>(start, model.parameters());
  for (int s = 0; s < layout.count; ++s) {
    CAPTURE(s);
    const int layer = tape_of<normalized::items>.nodes[layout.slots[s].node].layer_number;
    CHECK(moved[std::size_t(s)] == (layer == 4 || layer == 9 || layer == 13));  // conv2d, batch_norm, the last dense
  }
  CHECK(many.fit(x, y, epochs(6), verbose::off)["loss"] == past["loss"]);
  CHECK(std::ranges::equal(many.parameters(), model.parameters()));
}

TEST_CASE_TEMPLATE("gradients through frozen layers", Backend, reference, cpu) {
  check_gradients<normalized, crossentropy, Backend>(5);
  check_gradients<tuned, crossentropy, Backend>(5);
  check_gradients<nothing_below, crossentropy, Backend>(5);
}

TEST_CASE("a frozen batch_norm computes in training what it computes in inference") {
  using net = sequential<input<4, 3, 5>, frozen<batch_norm<>, activation<relu>>, flatten, dense<3, softmax>>;
  using P = program<net, crossentropy, sgd, type_list<>>;
  auto model = make<net>(sgd{.learning_rate = 0.0});
  std::vector<float> weights(model.parameters().begin(), model.parameters().end());
  for (std::size_t i = std::size_t(layout_of_program<P>.trainable); i < weights.size(); ++i) weights[i] = 0.5f + float(i % 7) / 4;
  model.set_parameters(weights);
  const std::vector<float> some = random_numbers<float>(24 * 60, 8);
  const std::vector<int> labels(24, 1);
  const training_history past = model.fit(some, labels, shuffle(false), batch_size(24), verbose::off);
  CHECK(std::abs(past["loss"][0] - model.evaluate(some, labels)["loss"]) < 1e-6);
}

TEST_CASE("weights of a file and of another network fit, whether layers are frozen or not") {
  const scratch_folder folder("frozen");
  const auto file = folder.path / "whole.safetensors";
  auto model = make<whole>();
  model.fit(x, y, epochs(2), verbose::off);
  model.save_weights(file);
  auto head = make<tuned>();
  head.load_weights(file);
  CHECK(head.predict(x).values == model.predict(x).values);
  auto third = make<tuned>();
  const transfer_report report = transfer_weights(model, third);
  CHECK(report.skipped.empty());
  CHECK(third.predict(x).values == model.predict(x).values);
  CHECK(predictor{tuned{}, file}.predict(x).values == model.predict(x).values);
  head.fit(x, y, epochs(1), verbose::off);
  head.save_weights(file);
  model.load_weights(file);
  CHECK(head.predict(x).values == model.predict(x).values);
}

TEST_CASE("copy_weights finds layers that are frozen in one of the networks") {
  using features = sequential<conv2d<4, 3, relu>, batch_norm<>, flatten>;
  auto from = make<sequential<input<8, 8, 3>, features, dense<7, softmax>>>();
  auto to = make<sequential<input<8, 8, 3>, frozen<features>, dense<3, softmax>>>();
  copy_weights<features>(from, to);
  auto back = make<sequential<input<8, 8, 3>, features, dense<2, softmax>>>();
  copy_weights<features>(to, back);
  using network = sequential<input<8, 8, 3>, features, dense<2, softmax>>;
  constexpr const auto& layout = layout_of<network::items>;
  constexpr const auto& wide = layout_of<sequential<input<8, 8, 3>, features, dense<7, softmax>>::items>;
  for (int s = 0; s < layout.count - 2; ++s)
    CHECK(std::ranges::equal(
        back.parameters().subspan(std::size_t(layout.slots[s].offset), std::size_t(layout.slots[s].what.extents.size())),
        from.parameters().subspan(std::size_t(wide.slots[s].offset), std::size_t(layout.slots[s].what.extents.size()))));
}

TEST_CASE("a network that is frozen as a whole evaluates, predicts and fits, and stays as it is") {
  auto model = make<sequential<input<8, 8, 3>, frozen<conv2d<4, 3, relu>, batch_norm<>, flatten, dense<3, softmax>>>>();
  const std::vector<float> start(model.parameters().begin(), model.parameters().end());
  const double loss = model.evaluate(x, y)["loss"];
  const training_history past = model.fit(x, y, epochs(2), verbose::off);
  CHECK(std::abs(past["loss"][0] - loss) < 1e-5);
  CHECK(past["loss"][1] == doctest::Approx(loss).epsilon(1e-5));
  CHECK(std::ranges::equal(model.parameters(), start));
}
