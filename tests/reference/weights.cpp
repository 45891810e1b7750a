// sample_weight and class_weight against recorded fits of Keras: losses, validation losses and weights after two epochs.
#include <strata/strata.hpp>

#include "recorded.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
recording recorded_weights("weights");

/// The elements of all parameters without padding, one after the other, in the order of Keras.
template <class Model>
std::vector<double> without_padding(const Model& model) {
  constexpr const auto& layout = layout_of_program<typename Model::program_type>;
  std::vector<double> out;
  for (int s = 0; s < layout.count; ++s)
    for (int i = 0; i < layout.slots[s].what.extents.size(); ++i)
      out.push_back(model.parameters()[std::size_t(layout.slots[s].offset + i)]);
  return out;
}
template <class Model>
void set(Model& model, const std::vector<double>& values) {
  constexpr const auto& layout = layout_of_program<typename Model::program_type>;
  std::vector<double> arena(model.parameters().begin(), model.parameters().end());
  std::size_t at = 0;
  for (int s = 0; s < layout.count; ++s)
    for (int i = 0; i < layout.slots[s].what.extents.size(); ++i) arena[std::size_t(layout.slots[s].offset + i)] = values[at++];
  model.set_parameters(arena);
}

template <class Last, class Loss>
void check(const std::string& name, Last, Loss, bool by_class) {
  CAPTURE(name);
  trainer model{sequential<input<4>, dense<5, tanh_activation>, Last>{}, sgd{.learning_rate = 0.25}, Loss{}, precision::f64{}};
  recording& r = recorded_weights;
  set(model, r.tensor(name + "/start"));
  const auto x = r.tensor(name + "/x"), weights = r.tensor(name + "/weights");
  class_weight classes{{0, 0.5}, {2, 3.0}};
  if (std::same_as<Loss, binary_crossentropy<>>) classes = class_weight{{0, 0.5}};  // Keras ignores that there is no class 2
  const auto fitted = [&](const auto& y) {
    if (by_class)
      return model.fit(x, y, epochs(2), batch_size(8), shuffle(false), validation(x, y, weights), classes, verbosity::off);
    return model.fit(x, y, epochs(2), batch_size(8), shuffle(false), validation(x, y, weights), sample_weight(weights),
                     verbosity::off);
  };
  training_history past;
  if constexpr (Loss::labels == label_kind::sparse)
    past = fitted(r.integers(name + "/y"));
  else
    past = fitted(r.tensor(name + "/y"));
  compare<double>(name + "/loss", past["loss"], r.tensor(name + "/loss"), 1e-12);
  compare<double>(name + "/val_loss", past["val_loss"], r.tensor(name + "/val_loss"), 1e-12);
  compare<double>(name + "/end", without_padding(model), r.tensor(name + "/end"), 1e-12);
}
}  // namespace

TEST_CASE("weights of samples and of classes do what they do in Keras") {
  check("sparse", dense<3, softmax>{}, sparse_categorical_crossentropy{}, false);
  check("sparse_class", dense<3, softmax>{}, sparse_categorical_crossentropy{}, true);
  check("logits", dense<3>{}, sparse_categorical_crossentropy<from_logits>{}, false);
  check("hot", dense<3, softmax>{}, categorical_crossentropy{}, false);
  check("hot_class", dense<3, softmax>{}, categorical_crossentropy{}, true);
  check("bits", dense<1, sigmoid>{}, binary_crossentropy{}, false);
  check("numbers", dense<2>{}, mean_squared_error{}, false);
  check("huber", dense<2>{}, huber{}, false);
  check("cosine", dense<2>{}, cosine_similarity{}, false);
  check("bits_class", dense<1, sigmoid>{}, binary_crossentropy{}, true);
  CHECK(recorded_weights.forgotten() == "");
}
