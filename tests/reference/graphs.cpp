// A graph of two inputs, a shared encoder and four outputs against the recording: ten steps of Adam, and what they report.
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

/// Calls f(a name such as dense/kernel, offset and size in the arena) for each parameter.
void for_each_parameter(auto&& f) {
  using items = net::items;
  static constexpr const auto& layout = layout_of<items>;
  const std::vector<std::string> names = parameter_names_of<net>();
  for (std::size_t i = 0; i < names.size(); ++i)
    f(names[i], std::size_t(layout.slots[i].offset), std::size_t(layout.slots[i].what.extents.size()));
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
  std::vector<T> weights(model.parameters().begin(), model.parameters().end());
  for_each_parameter([&](const std::string& name, std::size_t offset, std::size_t) {
    std::ranges::copy(recorded.tensor<T>("initial/" + name), weights.data() + offset);
  });
  model.set_parameters(weights);

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
  for_each_parameter([&](const std::string& name, std::size_t offset, std::size_t size) {
    compare<T>("trained/" + name, model.parameters().subspan(offset, size), recorded.tensor("trained/" + name), tolerance);
  });
}

}  // namespace

TEST_CASE(
    "a graph with shared layers, weights of losses and weights of samples trains as in Keras, and reports the same values under "
    "the same names") {
  recording recorded("graphs");
  train_as_recorded<precision::f64>(recorded);
  train_as_recorded<precision::f32>(recorded);
  CHECK(recorded.forgotten() == "");
}
