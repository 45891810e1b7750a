// The architecture of a network and its training, as the JSON that Keras reads: config.json of .keras, model_config of .h5.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/json.hpp>
#include <strata/base/text.hpp>
#include <strata/interop/keras/layer_list.hpp>
#include <strata/interop/keras/optimizer_variables.hpp>
#include <strata/train/model_view.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::keras {

using json = nlohmann::json;

/// Keras' name for an object of strata, and the names of its settings in the order of named_numbers. A name that ends in '?' is a
/// bool.
struct class_of_keras {
  std::string_view name, class_name;
  std::vector<std::string_view> settings{};

  json config(std::span<const double> numbers) const {
    json out = json::object();
    for (std::size_t i = 0; i < settings.size() && i < numbers.size(); ++i) {
      std::string_view key = settings[i];
      if (key.ends_with('?'))
        key.remove_suffix(1), out[std::string(key)] = numbers[i] != 0;
      else
        out[std::string(key)] = numbers[i];
    }
    return out;
  }
};

inline json object_of(std::string_view module, std::string_view class_name, json config) {
  return {{"module", module}, {"class_name", class_name}, {"config", std::move(config)}, {"registered_name", nullptr}};
}

/// Returns null if Keras has no such class.
inline json object_in(std::span<const class_of_keras> table, std::string_view module, std::string_view name,
                      std::span<const double> numbers) {
  for (const class_of_keras& c : table)
    if (c.name == name) return object_of(module, c.class_name, c.config(numbers));
  return nullptr;
}

/// The initializer of a parameter. A user's own initializer is left out: it only matters for a new model.
inline json initializer_config(const core::parameter& p) {
  static const class_of_keras table[] = {
      {"zeros", "Zeros"},
      {"ones", "Ones"},
      {"constant", "Constant", {"value"}},
      {"glorot_uniform", "GlorotUniform"},
      {"glorot_normal", "GlorotNormal"},
      {"he_uniform", "HeUniform"},
      {"he_normal", "HeNormal"},
      {"lecun_uniform", "LecunUniform"},
      {"lecun_normal", "LecunNormal"},
      {"random_uniform", "RandomUniform", {"minval", "maxval"}},
      {"random_normal", "RandomNormal", {"mean", "stddev"}},
      {"truncated_normal", "TruncatedNormal", {"mean", "stddev"}},
      {"orthogonal", "Orthogonal", {"gain"}},
  };
  return p.start ? object_in(table, "keras.initializers", p.start->name, p.start->settings) : json(nullptr);
}

inline json regularizer_config(const core::parameter& p) {
  if (p.regularizer.empty()) return nullptr;
  return object_of("keras.regularizers", "L1L2", {{"l1", p.regularizer.l1}, {"l2", p.regularizer.l2}});
}

/// The layers of a model as Keras' configurations. Throws strata_error that names a layer without a counterpart in Keras.
class config_writer {
  std::string file_;
  const model_view& model_;
  const layer_list& list_;

 public:
  /// `file` is the name of the file in errors.
  config_writer(std::string file, const model_view& model, const layer_list& list)
      : file_(std::move(file)), model_(model), list_(list) {}

  json model() const {
    json layers = json::array();
    for (const int number : list_.order) {
      const layer& l = list_[number];
      json entry = object_of("keras.layers", l.class_name, config_of(number));
      if (!list_.chain) {
        entry["name"] = l.name;
        entry["inbound_nodes"] = json::array();
        if (!l.inputs.empty()) entry["inbound_nodes"].push_back({{"args", arguments_of(l)}, {"kwargs", json::object()}});
      }
      layers.push_back(std::move(entry));
    }
    json config = {{"name", list_.model_name()}, {"trainable", true}, {"dtype", type()}, {"layers", std::move(layers)}};
    if (!list_.chain) {
      config["input_layers"] = tensors_of(list_.inputs);
      config["output_layers"] = tensors_of(list_.outputs);
    }
    json whole = object_of(list_.chain ? "keras" : "keras.src.models.functional", list_.model_class(), std::move(config));
    if (!list_.chain) whole["registered_name"] = list_.model_class();
    return whole;
  }

  /// An option of a layer with weights as the text by which files are compared; empty if there is none, or if it cannot be
  /// compared: an activation may also be the next layer.
  std::string option_of(int number, std::string_view option) const {
    const layer& l = list_[number];
    const std::span<const double> n = model_.operations[std::size_t(l.first)];
    const std::string_view operation = node(l.first).operation->name;
    const bool transposed = operation == "transposed_convolution";
    const auto pair = [&](std::size_t i) {
      return n[i] == n[i + 1] ? detail::formatted("%g", n[i]) : detail::formatted("%g x %g", n[i], n[i + 1]);
    };
    if (option == "activation") return has_activation(l) ? node(l.last).operation->name : "";
    if (option == "epsilon" && operation == "batch_normalization") return detail::formatted("%.6g", n[1]);
    if (option == "epsilon" && operation == "layer_normalization") return detail::formatted("%.6g", n[0]);
    if (operation == "depthwise_convolution") {
      if (option == "strides") return pair(2);
      if (option == "dilation_rate") return pair(4);
      if (option == "depth_multiplier") return detail::formatted("%g", n[6]);
      return option == "padding" ? n[7] != 0 ? "same" : "valid" : "";
    }
    if (!transposed && operation != "convolution") return "";
    if (option == "strides") return pair(3);
    if (option == "dilation_rate") return pair(5);
    if (option == "groups") return transposed ? "" : detail::formatted("%g", n[7]);
    if (option == "padding") return n[transposed ? 7 : 8] != 0 ? "same" : "valid";
    return "";
  }

 private:
  [[noreturn]] void refuse(const layer& l, std::string_view why) const {
    throw_error({"cannot write ", file_, ": layer ", l.name, ": ", why, "; a .weights.h5 file needs no architecture"});
  }

  const char* type() const { return model_.element_size == sizeof(double) ? "float64" : "float32"; }
  const core::tape_node& node(int i) const { return model_.nodes[std::size_t(i)]; }

  /// Whether the last operation of a layer of several is its activation.
  bool has_activation(const layer& l) const { return l.last > l.first && is_activation(node(l.last).operation->name); }

  static json extents_of(const shape& s, bool of_batch) {
    json out = json::array();
    if (of_batch) out.push_back(nullptr);
    for (int axis = 0; axis < s.rank(); ++axis) out.push_back(s[axis]);
    return out;
  }

  /// The tensors that are the arguments of a layer: one, or a list for a join.
  json arguments_of(const layer& l) const {
    json tensors = json::array();
    for (const int input : l.inputs) {
      const layer& from = list_[input];
      tensors.push_back(
          {{"class_name", "__keras_tensor__"},
           {"config",
            {{"shape", extents_of(node(from.last).out, true)}, {"dtype", type()}, {"keras_history", {from.name, 0, 0}}}}});
    }
    return node(l.last).arity > 1 ? json::array({std::move(tensors)}) : tensors;
  }

  /// The outputs of some layers: one, or a list.
  json tensors_of(const std::vector<int>& layers) const {
    json tensors = json::array();
    for (const int number : layers) tensors.push_back({list_[number].name, 0, 0});
    return tensors.size() == 1 ? json(tensors[0]) : tensors;
  }

  /// "relu", or a layer of Keras if a string cannot express the activation.
  json activation_of(const layer& l, int at) const {
    const std::string_view name = node(at).operation->name;
    const std::span<const double> settings = model_.operations[std::size_t(at)];
    if (!is_activation(name)) refuse(l, "Keras has no such activation");
    if (name == "gelu_approximate") refuse(l, "files of Keras have no option for the approximate gelu");
    if (name == "leaky_relu" && settings[0] != 0.2)
      return object_of("keras.layers", "LeakyReLU", {{"negative_slope", settings[0]}});
    if (name == "elu" && settings[0] != 1) return object_of("keras.layers", "ELU", {{"alpha", settings[0]}});
    return name;
  }

  json config_of(int number) const {
    const layer& l = list_[number];
    if (l.inputs.empty()) return {{"name", l.name}, {"batch_shape", extents_of(node(l.first).out, true)}, {"dtype", type()}};
    json config = {{"name", l.name}, {"trainable", !node(l.first).frozen}, {"dtype", type()}};
    config.update(settings_of(l));
    for (const int s : l.slots) {
      const core::parameter& p = model_.slots[std::size_t(s)].what;
      if (!p.trainable && !p.frozen) continue;  // Keras has no initializers for state
      std::string name = p.name;
      if (name.ends_with("_kernel")) name.erase(name.size() - std::string_view("_kernel").size());  // depthwise_initializer
      if (json start = initializer_config(p); !start.is_null()) config[name + "_initializer"] = std::move(start);
      if (!p.regularizer.empty()) config[name + "_regularizer"] = regularizer_config(p);
    }
    return config;
  }

  /// The settings of a layer, by its first operation. Numbers are in the order of the operation's settings.
  json settings_of(const layer& l) const {
    const std::string_view operation = node(l.first).operation->name;
    const std::span<const double> n = model_.operations[std::size_t(l.first)];
    const auto whole = [&](std::size_t i) { return int(n[i]); };
    const auto padding = [&](std::size_t i) { return n[i] != 0 ? "same" : "valid"; };
    const auto window = [&](std::size_t height) { return json{whole(height), whole(height + 1)}; };
    const auto with_activation = [&](json config) {
      config["activation"] = has_activation(l) ? activation_of(l, l.last) : json("linear");
      return config;
    };

    if (is_activation(operation)) return {{"activation", activation_of(l, l.first)}};
    if (operation == "affine") return with_activation({{"units", whole(0)}, {"use_bias", n[1] != 0}});
    if (operation == "convolution")  // conv_settings
      return with_activation({{"filters", whole(0)},
                              {"kernel_size", window(1)},
                              {"strides", window(3)},
                              {"dilation_rate", window(5)},
                              {"groups", whole(7)},
                              {"padding", padding(8)},
                              {"use_bias", n[9] != 0},
                              {"data_format", "channels_last"}});
    if (operation == "depthwise_convolution") {  // depthwise_settings, and those of the operation behind it
      json config = {{"kernel_size", window(0)},      {"strides", window(2)},  {"dilation_rate", window(4)},
                     {"depth_multiplier", whole(6)},  {"padding", padding(7)}, {"use_bias", n[8] != 0},
                     {"data_format", "channels_last"}};
      if (l.class_name == "SeparableConv2D") {
        const std::span<const double> pointwise = model_.operations[std::size_t(l.first) + 1];
        config["filters"] = int(pointwise[0]), config["use_bias"] = pointwise[1] != 0;
      }
      return with_activation(std::move(config));
    }
    if (operation == "transposed_convolution")  // transposed_conv_settings
      return with_activation({{"filters", whole(0)},
                              {"kernel_size", window(1)},
                              {"strides", window(3)},
                              {"dilation_rate", window(5)},
                              {"padding", padding(7)},
                              {"use_bias", n[8] != 0},
                              {"output_padding", nullptr},
                              {"data_format", "channels_last"}});
    if (operation == "max_pooling" || operation == "average_pooling") {  // pool_settings: a stride of 0 is the window
      json strides = {whole(2) > 0 ? whole(2) : whole(0), whole(3) > 0 ? whole(3) : whole(1)};
      return {
          {"pool_size", window(0)}, {"strides", std::move(strides)}, {"padding", padding(4)}, {"data_format", "channels_last"}};
    }
    if (operation == "batch_normalization")
      return {{"axis", -1}, {"momentum", n[0]}, {"epsilon", n[1]}, {"center", n[2] != 0}, {"scale", n[3] != 0}};
    if (operation == "layer_normalization") return {{"axis", -1}, {"epsilon", n[0]}, {"center", n[1] != 0}, {"scale", n[2] != 0}};
    if (operation == "normalization") return {{"axis", {-1}}, {"invert", false}, {"mean", nullptr}, {"variance", nullptr}};
    if (operation == "lookup") return {{"input_dim", whole(0)}, {"output_dim", whole(1)}, {"mask_zero", false}};
    if (operation == "dropout") {
      json noise = n.size() > 1 ? extents_of(node(l.last).out, true) : json();
      for (std::size_t axis = 1; axis < noise.size(); ++axis) noise[axis] = whole(axis);
      return {{"rate", n[0]}, {"seed", nullptr}, {"noise_shape", std::move(noise)}};
    }
    if (operation == "rescaling") return {{"scale", n[0]}, {"offset", n[1]}};
    if (operation == "flatten") return {{"data_format", "channels_last"}};
    if (operation == "reshape") return {{"target_shape", extents_of(node(l.last).out, false)}};
    if (operation == "zero_padding") return {{"padding", json::array({window(0), window(2)})}, {"data_format", "channels_last"}};
    if (operation == "cropping") return {{"cropping", json::array({window(0), window(2)})}, {"data_format", "channels_last"}};
    if (operation == "up_sampling")
      return {{"size", window(0)}, {"interpolation", n[2] != 0 ? "bilinear" : "nearest"}, {"data_format", "channels_last"}};
    if (operation == "one_column" || operation.starts_with("global_"))
      return {{"data_format", "channels_last"}, {"keepdims", false}};
    if (operation == "concat") return {{"axis", -1}};
    if (operation == "add" || operation == "average" || operation == "maximum" || operation == "multiply" ||
        operation == "subtract")
      return json::object();
    refuse(l, detail::text_of({"Keras has no layer ", l.class_name}));
  }
};

/// The arguments of model.compile: compile_config of .keras. Null without an optimizer, if Keras has no such optimizer or loss,
/// and for several outputs.
inline json compile_config(const model_view& model) {
  static const class_of_keras losses[] = {
      {"sparse_categorical_crossentropy", "SparseCategoricalCrossentropy", {"from_logits?"}},
      {"categorical_crossentropy", "CategoricalCrossentropy", {"from_logits?", "label_smoothing"}},
      {"binary_crossentropy", "BinaryCrossentropy", {"from_logits?", "label_smoothing"}},
      {"categorical_focal_crossentropy", "CategoricalFocalCrossentropy", {"from_logits?", "label_smoothing", "alpha", "gamma"}},
      {"binary_focal_crossentropy",
       "BinaryFocalCrossentropy",
       {"from_logits?", "label_smoothing", "alpha", "gamma", "apply_class_balancing?"}},
      {"huber", "Huber", {"delta"}},
      {"mean_squared_error", "MeanSquaredError"},
      {"mean_absolute_error", "MeanAbsoluteError"},
      {"mean_absolute_percentage_error", "MeanAbsolutePercentageError"},
      {"mean_squared_logarithmic_error", "MeanSquaredLogarithmicError"},
      {"cosine_similarity", "CosineSimilarity"},
      {"kl_divergence", "KLDivergence"},
      {"poisson", "Poisson"},
      {"log_cosh", "LogCosh"},
      {"hinge", "Hinge"},
      {"squared_hinge", "SquaredHinge"},
      {"categorical_hinge", "CategoricalHinge"},
  };
  static constexpr std::string_view metrics[] = {"accuracy", "binary_accuracy", "categorical_accuracy",
                                                 "sparse_categorical_accuracy"};

  if (!model.optimizer || model.outputs.size() > 1 || !model.loss) return nullptr;
  json loss = object_in(losses, "keras.losses", model.loss->name, model.loss->settings);
  if (loss.is_null()) return nullptr;  // Keras would train without a loss
  const auto known_optimizer =
      std::ranges::find(optimizer_classes, std::string_view(model.optimizer->name), [](const auto& o) { return o.first; });
  if (known_optimizer == std::end(optimizer_classes)) return nullptr;
  json config = {{"name", model.optimizer->name}, {"learning_rate", model.optimizer->learning_rate}};
  for (const core::optimizer_setting& s : model.optimizer->settings) {
    const std::string_view name = s.name;
    if (name == "nesterov" || name == "amsgrad" || name == "centered")
      config[s.name] = s.value != 0;
    else if (s.value == 0 && (name == "weight_decay" || name.starts_with("clip") || name == "global_clipnorm"))
      config[s.name] = nullptr;
    else
      config[s.name] = s.value;
  }
  json known = json::array();
  for (const core::named_numbers& m : model.metrics)
    if (std::ranges::find(metrics, std::string_view(m.name)) != std::end(metrics)) known.push_back(m.name);
  return {{"optimizer", object_of("keras.optimizers", known_optimizer->second, std::move(config))},
          {"loss", std::move(loss)},
          {"loss_weights", nullptr},
          {"metrics", std::move(known)},
          {"weighted_metrics", nullptr},
          {"run_eagerly", false},
          {"steps_per_execution", 1}};
}

}  // namespace strata::keras
