// The layers of a network in the form of Keras: their classes, names, inputs and weights, in Keras' order.
#pragma once
#include <algorithm>
#include <map>
#include <span>
#include <strata/network/layer_names.hpp>
#include <strata/train/model_view.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace strata::keras {

/// A layer of Keras.
struct layer {
  std::string class_name;   // Conv2D
  std::string name;         // conv2d_1, unique in the network, numbered in strata's order
  std::string group;        // the same, numbered in Keras' order: its group in weights files
  int first = 0, last = 0;  // indices of its nodes
  std::vector<int> inputs;  // indices of layers in strata's order
  std::vector<int> slots;   // its parameters: the trained ones first
  bool is_implied = false;  // keras_to_strata may have written it for an option of a layer before or behind it
};

/// Whether a layer of that class may be implied: by a join that enlarges a pixel, and by keepdims.
inline bool may_be_implied(std::string_view class_name) { return class_name == "UpSampling2D" || class_name == "Reshape"; }

/// Whether an operation is an activation of keras.activations.
inline bool is_activation(std::string_view operation) {
  static constexpr std::string_view known[] = {
      "linear", "relu",         "relu6",     "leaky_relu", "elu",     "selu",     "gelu",     "gelu_approximate",
      "silu",   "hard_sigmoid", "hard_silu", "tanh",       "sigmoid", "softplus", "softsign", "softmax"};
  return std::ranges::find(known, operation) != std::end(known);
}

/// The layers in strata's order, the input first. Names of groups are not set.
inline std::vector<layer> layers_by_number(const model_view& model) {
  detail::refuse_shared_layers(model, "files of Keras");
  std::vector<std::string> names = detail::layer_names(model.nodes);
  // Inputs and outputs of a graph have the names of their nodes.
  for (int i = 0; i < int(model.nodes.size()) && !model.named_nodes.empty(); ++i)
    if (const core::tape_node& n = model.nodes[std::size_t(i)]; n.is_input() || std::ranges::count(model.outputs, i) > 0) {
      std::string& layer = names[std::size_t(n.layer_number)];
      layer.clear();
      layer = detail::unique_name(std::string(detail::named_node_of(model.named_nodes, i).name), names);
    }
  std::vector<layer> layers(names.size());
  for (std::size_t i = model.nodes.size(); i-- > 0;) {
    const core::tape_node& n = model.nodes[i];
    layer& l = layers[std::size_t(n.layer_number)];
    if (l.name.empty()) l.last = int(i);
    l.first = int(i);
    l.name = names[std::size_t(n.layer_number)];
    l.class_name = n.layer->class_name;
  }
  for (layer& l : layers) {
    const core::tape_node& n = model.nodes[std::size_t(l.first)];
    if (is_activation(l.class_name)) l.class_name = "Activation";  // relu as a layer of its own
    for (int k = 0; k < n.arity; ++k) l.inputs.push_back(model.nodes[std::size_t(n.input[k])].layer_number);
    if (n.arity == 1) {
      const core::tape_node& from = model.nodes[std::size_t(n.input[0])];
      const shape pixel{1, 1, from.out.last()};
      l.is_implied = (l.class_name == "UpSampling2D" && from.out == pixel) ||
                     (l.class_name == "Reshape" && std::string_view(from.operation->name).starts_with("global_"));
    }
    for (const bool trainable : {true, false})
      for (std::size_t s = 0; s < model.slots.size(); ++s)
        if (const core::parameter_slot& slot = model.slots[s];
            slot.node >= l.first && slot.node <= l.last && slot.what.trainable == trainable)
          l.slots.push_back(int(s));
  }
  return layers;
}

/// Whether each layer reads only the layer before it, as in keras.Sequential.
inline bool is_chain(std::span<const layer> layers) {
  for (int i = 1; i < int(layers.size()); ++i)
    if (layers[std::size_t(i)].inputs != std::vector{i - 1}) return false;
  return true;
}

/// The order of a Functional model: by their distance from an output, the farthest first, and at equal distance in the order of
/// walks from the outputs to the inputs. It depends on the graph only, so a loaded model has it, too.
/// Without `implied`, implied layers do not count as steps. (keras/src/ops/function.py, map_graph)
inline std::vector<int> keras_order(std::span<const layer> layers, std::span<const int> outputs, bool implied) {
  const std::size_t count = layers.size();
  std::vector<int> met(count, -1), finished, distance(count, 0);
  struct visit {
    int layer;
    std::size_t next_input;
  };
  std::vector<visit> way;  // a stack instead of a recursion over layers
  int number = 0;
  const auto begin = [&](int at) {
    if (met[std::size_t(at)] >= 0) return;
    met[std::size_t(at)] = number++;
    way.push_back({at, 0});
  };
  for (const int output : outputs)
    for (begin(output); !way.empty();) {
      visit& here = way.back();
      const std::vector<int>& inputs = layers[std::size_t(here.layer)].inputs;
      if (here.next_input < inputs.size())
        begin(inputs[here.next_input++]);
      else {
        finished.push_back(here.layer);
        way.pop_back();
      }
    }
  for (auto at = finished.rbegin(); at != finished.rend(); ++at)
    for (const int input : layers[std::size_t(*at)].inputs)
      distance[std::size_t(input)] =
          std::max(distance[std::size_t(input)], distance[std::size_t(*at)] + (implied || !layers[std::size_t(*at)].is_implied));
  std::ranges::sort(finished, [&](int a, int b) {
    const auto of = [&](int i) { return std::pair(-distance[std::size_t(i)], met[std::size_t(i)]); };
    return of(a) < of(b);
  });
  return finished;
}

/// The number of layers in a file: all, or those of a class that may be implied.
struct layers_in_file {
  std::ptrdiff_t count = 0;
  bool of_all_classes = false;
};

/// A network as a list of Keras' layers.
struct layer_list {
  std::vector<layer> layers;         // in strata's order
  std::vector<int> inputs, outputs;  // numbers of layers
  std::vector<int> order;            // Keras' order, including the inputs
  bool chain = true;                 // a Sequential model

  /// The list for a new file.
  explicit layer_list(const model_view& model) : layer_list(model, layers_by_number(model)) {}
  /// The list for a file. A file of Keras does not have the layers that keras_to_strata writes for options of others, and then
  /// Keras' order is that without them. Throws strata_error if the number of layers fits neither, and the orders of the weights
  /// differ.
  layer_list(const model_view& model, layers_in_file in_file, const std::string& file) : layer_list(model) {
    const auto implied = std::ranges::count_if(layers, &layer::is_implied);
    const auto all =
        std::ranges::count_if(layers, [&](const layer& l) { return in_file.of_all_classes || may_be_implied(l.class_name); });
    std::vector<int> of_keras = keras_order(layers, outputs, false);
    if (in_file.count == all || with_weights(order) == with_weights(of_keras)) return;
    if (in_file.count != all - implied)
      throw_error({file, ": the order of its layers is not known, because it has ", in_file.count,
                   in_file.of_all_classes ? " layers, and the network " : " layers UpSampling2D and Reshape, and the network ",
                   all, ", of which ", implied, " may be options of other layers"});
    order = std::move(of_keras);
    name_groups();
  }

  const layer& operator[](int number) const { return layers[std::size_t(number)]; }
  const char* model_class() const { return chain ? "Sequential" : "Functional"; }
  const char* model_name() const { return chain ? "sequential" : "functional"; }

 private:
  layer_list(const model_view& model, std::vector<layer> all) : layers(std::move(all)) {
    for (int i = 0; i < int(layers.size()); ++i)
      if (layers[std::size_t(i)].inputs.empty()) inputs.push_back(i);
    for (const int node : model.outputs) outputs.push_back(model.nodes[std::size_t(node)].layer_number);
    order = keras_order(layers, outputs, true);
    chain = outputs.size() == 1 && is_chain(layers);
    name_groups();
  }
  void name_groups() {
    std::vector<std::string> taken;
    for (const int i : order) {
      layer& l = layers[std::size_t(i)];
      l.group = detail::unique_name(detail::snake_case(l.class_name), taken);
      taken.push_back(l.group);
    }
  }
  std::vector<int> with_weights(std::vector<int> some) const {
    std::erase_if(some, [&](int number) { return (*this)[number].slots.empty(); });
    return some;
  }
};

}  // namespace strata::keras
