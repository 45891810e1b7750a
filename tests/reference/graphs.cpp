// A graph of two inputs, a shared encoder and four outputs, and a variational autoencoder against the recording: steps, and what
// they report.
#include <strata/strata.hpp>

#include "recorded.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {

constexpr std::size_t steps = 10, weighted = 5;  // from that step on, samples have weights

struct left : input<4> {};
struct right : input<4> {};
struct encoder : shared<dense<6, tanh_activation>, dense<3>> {};
struct code_of_left : node<left, encoder> {};
struct code_of_right : node<right, encoder> {};
struct both : node<multiply<code_of_left, code_of_right>> {};
struct kind : node<both, dense<3, softmax>> {};
struct box : node<concat<code_of_left, both>, dense<2>> {};
struct spot : node<code_of_right, dense<2>> {};
struct hint : node<both, dense<2>> {};
using net = graph<kind, box, spot, hint>;

struct x : input<4> {};
struct noise : input<2> {};
struct seen : node<x, dense<5, tanh_activation>> {};
struct mean : node<seen, dense<2>> {};
struct deviation : node<seen, dense<2, softplus>> {};
struct latent : node<concat<mean, deviation>> {};
struct decoded : node<add<mean, multiply<deviation, noise>>, dense<4>> {};
using autoencoder = graph<decoded, latent>;

/// Calls f(a name such as dense/kernel, offset and size in the arena) for each parameter.
template <class Network>
void for_each_parameter(auto&& f) {
  static constexpr const auto& layout = layout_of<typename Network::items>;
  const std::vector<std::string> names = parameter_names_of<Network>();
  for (std::size_t i = 0; i < names.size(); ++i)
    f(names[i], std::size_t(layout.slots[i].offset), std::size_t(layout.slots[i].what.extents.size()));
}
template <class T>
void set_initial(auto& model, recording& recorded, const std::string& folder) {
  std::vector<T> weights(model.parameters().begin(), model.parameters().end());
  for_each_parameter<typename std::remove_cvref_t<decltype(model)>::network>(
      [&](const std::string& name, std::size_t offset, std::size_t) {
        std::ranges::copy(recorded.tensor<T>(folder + "initial/" + name), weights.data() + offset);
      });
  model.set_parameters(weights);
}
template <class T>
void compare_trained(auto& model, recording& recorded, const std::string& folder) {
  for_each_parameter<typename std::remove_cvref_t<decltype(model)>::network>(
      [&](const std::string& name, std::size_t offset, std::size_t size) {
        compare<T>("trained/" + name, model.parameters().subspan(offset, size), recorded.tensor(folder + "trained/" + name),
                   tolerance_of<T>);
      });
}

template <class Precision>
void train_as_recorded(recording& recorded) {
  using T = typename Precision::value_type;
  constexpr double tolerance = tolerance_of<T>;
  INFO(sizeof(T) << " bytes");
  trainer model{net{},
                adam{.learning_rate = 0.01},
                compare<kind>(sparse_categorical_crossentropy{}, accuracy{}),
                compare<box>(mean_squared_error{}, loss_weight(0.25), mean_absolute_error{}),
                compare<spot>(mean_squared_error{}, loss_weight(0)),
                Precision{},
                one_device{{.threads = 1, .leaves = 2, .micro_batch = 2}}};
  set_initial<T>(model, recorded, "");

  const std::vector<T> lefts = recorded.tensor<T>("left"), rights = recorded.tensor<T>("right"),
                       boxes = recorded.tensor<T>("box"), spots = recorded.tensor<T>("spot"),
                       of_kinds = recorded.tensor<T>("weights/kind"), of_boxes = recorded.tensor<T>("weights/box");
  const std::vector<std::int32_t> kinds = recorded.integers("kind");
  const auto part = [](const auto& all, std::size_t step) {
    const std::size_t size = all.size() / steps;
    return std::span(all).subspan(step * size, size);
  };
  const auto [of_kind, of_box, of_spot, of_hint] = model.predict(of<left>(part(lefts, 0)), of<right>(part(rights, 0)));
  compare<T>("kind", of_kind.values, recorded.tensor("predictions/kind"), tolerance);
  compare<T>("box", of_box.values, recorded.tensor("predictions/box"), tolerance);
  compare<T>("spot", of_spot.values, recorded.tensor("predictions/spot"), tolerance);
  compare<T>("hint", of_hint.values, recorded.tensor("predictions/hint"), tolerance);

  static constexpr const char* names[] = {"loss",      "kind_loss",     "box_loss",
                                          "spot_loss", "kind_accuracy", "box_mean_absolute_error"};
  std::vector<double> reported[std::size(names)];
  for (std::size_t step = 0; step < steps; ++step) {
    const auto train = [&](const auto&... more) {
      return model.train_step(of<left>(part(lefts, step)), of<right>(part(rights, step)), of<kind>(part(kinds, step)),
                              of<box>(part(boxes, step)), of<spot>(part(spots, step)), more...);
    };
    const auto sums = step < weighted
                          ? train()
                          : train(of<kind>(sample_weight(part(of_kinds, step))), of<box>(sample_weight(part(of_boxes, step))));
    for (std::size_t k = 0; k < std::size(names); ++k) reported[k].push_back(sums[k].mean());
  }
  const auto past = model.evaluate(of<left>(lefts), of<right>(rights), of<kind>(kinds), of<box>(boxes), of<spot>(spots));
  CHECK(!past.contains("hint_loss"));
  for (std::size_t k = 0; k < std::size(names); ++k) {
    CHECK(past.contains(names[k]));
    compare<double>(names[k], reported[k], recorded.tensor(std::string("reported/") + names[k]), tolerance);
  }
  compare_trained<T>(model, recorded, "");
}

template <class Precision>
void train_autoencoder(recording& recorded) {
  using T = typename Precision::value_type;
  INFO(sizeof(T) << " bytes");
  trainer model{autoencoder{},
                sgd{.learning_rate = 0.05},
                compare<decoded>(mean_squared_error{}),
                compare<latent>(kl_of_normal{}, loss_weight(0.1)),
                Precision{},
                one_device{{.threads = 1, .leaves = 2, .micro_batch = 2}}};
  set_initial<T>(model, recorded, "vae/");
  const std::vector<T> xs = recorded.tensor<T>("vae/x"), noises = recorded.tensor<T>("vae/noise");
  std::vector<double> losses, divergences;
  for (std::size_t step = 0; step < 5; ++step) {
    const auto own = std::span(xs).subspan(step * xs.size() / 5, xs.size() / 5);
    const auto sums = model.train_step(
        of<x>(own), of<noise>(std::span(noises).subspan(step * noises.size() / 5, noises.size() / 5)), of<decoded>(own));
    losses.push_back(sums[0].mean()), divergences.push_back(sums[2].mean());
  }
  compare<double>("loss", losses, recorded.tensor("vae/reported/loss"), tolerance_of<T>);
  compare<double>("divergence", divergences, recorded.tensor("vae/reported/divergence"), tolerance_of<T>);
  compare_trained<T>(model, recorded, "vae/");
}

}  // namespace

TEST_CASE(
    "a graph with shared layers, weights of losses and weights of samples trains as in Keras, and reports the same values under "
    "the same names") {
  recording recorded("graphs");
  train_as_recorded<precision::f64>(recorded);
  train_as_recorded<precision::f32>(recorded);
  train_autoencoder<precision::f64>(recorded);
  train_autoencoder<precision::f32>(recorded);
  CHECK(recorded.forgotten() == "");
}
