// The variables of Keras' optimizers, in the order in which Keras saves them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <strata/interop/keras/layer_list.hpp>
#include <strata/train/model_view.hpp>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::keras {

inline double setting_of(const optimizer_view& optimizer, std::string_view name) {
  for (const core::optimizer_setting& s : optimizer.settings)
    if (s.name == name) return s.value;
  return 0;
}

/// Keras' names for the optimizers of strata.
inline constexpr std::pair<std::string_view, std::string_view> optimizer_classes[] = {
    {"sgd", "SGD"},       {"adam", "Adam"},   {"adamw", "AdamW"},     {"rmsprop", "RMSprop"},
    {"adamax", "Adamax"}, {"nadam", "Nadam"}, {"adagrad", "Adagrad"}, {"adadelta", "Adadelta"},
    {"lion", "Lion"},     {"ftrl", "Ftrl"},   {"lamb", "Lamb"}};

/// Whether the view has an optimizer whose state Keras can read: not a user's own, and none with moving averages of weights.
inline bool has_optimizer_of_keras(const model_view& model) {
  return model.optimizer &&
         std::ranges::any_of(optimizer_classes, [&](const auto& known) { return known.first == model.optimizer->name; });
}

/// Whether the optimizer of a file, by its class, differs from ours.
inline bool is_another_optimizer(std::string_view class_name, std::string_view ours) {
  if (class_name.empty()) return false;
  return std::ranges::any_of(optimizer_classes,
                             [&](const auto& known) { return known.first == ours && known.second != class_name; });
}

/// A variable that an optimizer keeps for a parameter.
struct optimizer_variable {
  int slot;            // of the model
  int optimizer_slot;  // of the optimizer
  double offset;       // added by Keras: its sums of squares begin at an initial value, ours at zero
};

/// The variables after the number of updates and the learning rate: slots that Keras creates together alternate for each
/// parameter; further slots follow, each for all parameters.
inline std::vector<optimizer_variable> optimizer_variables(const model_view& model, const layer_list& list) {
  const optimizer_view& optimizer = *model.optimizer;
  const std::string_view name = optimizer.name;
  const int together = name == "rmsprop" ? 1 : 2;
  const double initial = setting_of(optimizer, "initial_accumulator_value");
  std::vector<optimizer_variable> all;
  for (int begin = 0; begin < optimizer.slots; begin += begin == 0 ? together : 1) {
    const int end = std::min(optimizer.slots, begin + (begin == 0 ? together : 1));
    for (const int number : list.order)
      for (const int slot : list[number].slots)
        for (int k = begin; k < end && model.slots[std::size_t(slot)].what.trainable; ++k)
          all.push_back({slot, k, k == 0 ? initial : 0});
  }
  return all;
}

}  // namespace strata::keras
