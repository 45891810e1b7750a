// The type of a network, as text, from the architecture in a file of Keras.
// needs: hdf5 libzip
#pragma once
#include <algorithm>
#include <map>
#include <set>
#include <strata/base/error.hpp>
#include <strata/base/exceptions.hpp>
#include <strata/base/text.hpp>
#include <strata/interop/keras/architecture.hpp>
#include <strata/interop/keras/graph_text.hpp>
#include <strata/interop/keras/layer_text.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::keras {

inline bool is_model(const std::string& class_name) {
  return class_name == "Sequential" || class_name == "Functional" || class_name == "Model";
}

/// A call of a layer: its input layers, and the parts of the call that strata cannot express.
struct layer_call {
  std::vector<std::string> inputs, unknown;
  bool has_constants = false;
  std::optional<double> first{}, second{};  // a number beside a tensor: 3 - x, x - 3

  /// `nodes` is what Keras writes as inbound_nodes, by Keras 2 [[["dense", 0, 0, {}], ...]], by Keras 3 [{"args": ..., "kwargs":
  /// ...}].
  /// `trains_otherwise`: the layer computes differently in a fit and in a prediction. Keras 2 then applies training=False in a
  /// fit, too; Keras 3 does not, and writes it for each Dropout.
  layer_call(const json& nodes, bool trains_otherwise) {
    if (nodes.size() > 1) unknown.push_back("is called several times");
    if (nodes.empty()) return;
    const json& node = nodes.at(0);
    if (node.is_array()) {
      const bool single = !node.empty() && node[0].is_string();
      for (const json& input : single ? json::array({node}) : node) {
        tensor(input);
        if (input.is_array() && input.size() > 3) options(input[3], trains_otherwise);
      }
      return;
    }
    // x + y is an Add with two arguments; the layer Add has one, a list.
    const json& arguments = node.at("args");
    for (const json& argument : arguments)
      if (argument.is_array())
        for (const json& one : argument) tensor(one);
      else if (argument.is_number() && arguments.size() == 2)
        (&argument == &arguments[0] ? first : second) = argument.get<double>();
      else
        tensor(argument);
    options(node.value("kwargs", json()), false);
  }

 private:
  void tensor(const json& t) {
    const bool by_object = t.is_object() && t.value("class_name", "") == "__keras_tensor__";
    const json& history = by_object ? t.at("config").at("keras_history") : t;
    if (!history.is_array() || history.size() < 3 || !history[0].is_string() || history[0] == "_CONSTANT_VALUE") {
      has_constants = true;
      return unknown.push_back("is called with a constant, " + shown(history));
    }
    if (history[2] != 0) unknown.push_back("is called with " + shown(history) + ", not the first output of a layer");
    inputs.push_back(history[0].get<std::string>());
  }
  void options(const json& by_name, bool obeys_training) {
    for (const auto& [name, value] : by_name.items())
      if (!value.is_null() && (value != false || (name == "training" && obeys_training)))
        unknown.push_back("is called with " + name + "=" + shown(value));
  }
};

/// A graph as sequences of layers and joins of branches, or, if these cannot express it, as nodes.
class graph_writer {
  network_text& out_;
  std::string version_;
  layer_writer layers_{out_, version_};
  std::vector<graph_node> nodes_;  // each node after its inputs
  std::map<std::string, int> number_;
  std::vector<int> above_;  // for each node, the nearest layer on all paths from the input to it
  std::set<int> written_;
  bool crosses_ = false;

 public:
  graph_writer(network_text& out, std::string version) : out_(out), version_(std::move(version)) {}

  /// Writes the whole model, so that all unknown parts are in one list.
  void write(const json& model) {
    const std::string kind = class_of(model);
    if (!is_model(kind)) return out_.unknown.push_back("the model is a " + kind + ", neither Sequential nor Functional");
    place(read(model.at("config"), kind == "Sequential"));
    if (nodes_.empty()) throw_error("the model has no layers");
    for (graph_node& node : nodes_) {
      std::vector<const graph_node*> inputs;
      for (const std::string& name : node.inputs) inputs.push_back(&nodes_[std::size_t(number_.at(name))]);
      if (!node.is_unknown) layers_.write(node, inputs);
    }
    const std::vector<int> outputs = outputs_of(model["config"]);
    const node_writer nodes(nodes_, outputs, [&](const std::string& name) { return number_.at(name); });
    for (int i = 0; i < int(nodes_.size()); ++i)
      if (!nodes.is_read(i)) layers_.unknown(nodes_[std::size_t(i)], "leads to no output");
    const auto inputs = std::ranges::count_if(nodes_, [](const graph_node& n) { return n.inputs.empty(); });
    if (std::max(inputs, std::ssize(outputs)) > core::max_ends)
      out_.unknown.push_back("a graph has at most 8 inputs and 8 outputs");
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const graph_node& output = nodes_[std::size_t(outputs[k])];
      if (output.inputs.empty() && nodes_.size() > 1) layers_.unknown(output, "is an input and an output");
      if (std::ranges::count(outputs.begin(), outputs.begin() + std::ptrdiff_t(k), outputs[k]) > 0)
        layers_.unknown(output, "is an output several times");
    }
    if (!out_.unknown.empty()) return;
    if (inputs == 1 && outputs.size() == 1) {
      find_above();
      std::string text = "sequential<\n    " + nodes_[0].text;
      for (const std::string& item : row(0, outputs[0])) text += ",\n    " + item;
      if (!crosses_) return void(out_.type = text + ">");
    }
    out_.structs = nodes.structs();
    out_.type = "graph<" + detail::joined(outputs.size(), ", ", [&](std::size_t i) { return nodes.name_of(outputs[i]); }) + ">";
  }

 private:
  std::vector<graph_node> read(const json& config, bool in_a_row) {
    std::vector<graph_node> nodes;
    for (const json& l : config.is_array() ? config : config.at("layers")) {
      graph_node n{l.value("name", ""), l.at("class_name"), l.at("config"), {}};
      if (n.name.empty()) n.name = n.config.is_object() ? n.config.value("name", n.class_name) : n.class_name;
      if (in_a_row) {
        if (nodes.empty() && n.class_name != "InputLayer") {
          json start = is_model(n.class_name) ? n.config.at("layers").at(0).at("config") : n.config;
          if (config.is_object() && config.contains("build_input_shape") && !start.contains("batch_input_shape"))
            start["batch_input_shape"] = config["build_input_shape"];
          nodes.push_back({"input", "InputLayer", std::move(start), {}});
        }
        if (!nodes.empty()) n.inputs = {nodes.back().name};
      } else {
        layer_call call(l.at("inbound_nodes"), n.class_name == "BatchNormalization" || n.class_name.ends_with("Dropout") ||
                                                   n.class_name.ends_with("Dropout2D"));
        for (const std::string& why : call.unknown) layers_.unknown(n, why);
        n.inputs = std::move(call.inputs);
        n.is_unknown = call.has_constants;
        require_layer_of_keras(l, n);
        if (call.first || call.second) rescale(n, call);
      }
      if (in_a_row) require_layer_of_keras(l, n);
      if (is_model(n.class_name)) {
        layers_.unknown(n, "a model within the model");
        n.is_unknown = true;
        n.config = json::object();  // in Keras 2.0 it is an array
        network_text within;
        graph_writer(within, version_).write(l);
        for (const std::string& what : within.unknown) out_.unknown.push_back(n.name + "/" + what);
      }
      nodes.push_back(std::move(n));
    }
    return nodes;
  }
  /// A join with a number is a Rescaling.
  void rescale(graph_node& n, const layer_call& call) {
    const double number = call.first.value_or(call.second.value_or(0));
    if (n.class_name == "Multiply")
      n.config = {{"scale", number}, {"offset", 0}};
    else if (n.class_name == "Add")
      n.config = {{"scale", 1}, {"offset", number}};
    else if (n.class_name == "Subtract")
      n.config = {{"scale", call.first ? -1 : 1}, {"offset", call.first ? number : -number}};
    else {
      layers_.unknown(n, "is called with a constant, " + shown(number));
      n.is_unknown = true;
      return;
    }
    n.class_name = "Rescaling";
  }

  /// User classes, and operations such as keras.ops.average, may have the name of a layer of Keras.
  void require_layer_of_keras(const json& l, graph_node& n) {
    const json module = l.value("module", json());
    static const std::set<std::string> joins{"Add", "Subtract", "Multiply", "Maximum"};
    const std::string name = std::exchange(n.class_name, class_of(l));
    if (n.class_name == name && module.is_string() && module.get<std::string>().find(".ops") != std::string::npos &&
        !joins.contains(n.class_name))
      n.class_name = "ops." + n.class_name;
  }

  /// Moves each layer behind its inputs.
  void place(std::vector<graph_node> read) {
    if (read.size() > 4000) throw_error({"the model has ", read.size(), " layers, and at most 4000 are read"});
    std::set<std::string> names;
    for (const graph_node& n : read)
      if (!names.insert(n.name).second) throw_error({"two layers have the name ", n.name});
    while (!read.empty()) {
      const auto ready = std::ranges::find_if(read, [&](const graph_node& n) {
        return std::ranges::all_of(n.inputs, [&](const std::string& i) { return number_.contains(i); });
      });
      if (ready == read.end()) throw_error({"layer ", read.front().name, " reads one that does not exist, or reads itself"});
      number_[ready->name] = int(nodes_.size());
      nodes_.push_back(std::move(*ready));
      read.erase(ready);
    }
  }
  /// Keras writes ["dense", 0, 0], or a list or an object of these.
  std::vector<int> outputs_of(const json& config) const {
    if (!config.is_object() || !config.contains("output_layers")) return {int(nodes_.size()) - 1};
    const json& all = config["output_layers"];
    std::vector<int> outputs;
    const auto add = [&](const json& one) {
      if (!one.is_array() || one.empty() || !one[0].is_string()) throw_error("nested outputs of a model are not read");
      const auto output = number_.find(one[0].get<std::string>());
      if (output == number_.end()) throw_error({"the output, layer ", shown(one[0]), ", does not exist"});
      outputs.push_back(output->second);
    };
    if (all.is_array() && !all.empty() && all[0].is_string())
      add(all);
    else
      for (const json& one : all) add(one);
    if (outputs.empty()) throw_error("the model has no outputs");
    return outputs;
  }
  int input(int node, std::size_t k) const { return number_.at(nodes_[std::size_t(node)].inputs[k]); }

  void find_above() {
    above_.assign(nodes_.size(), 0);
    for (int i = 1; i < int(nodes_.size()); ++i) {
      int common = input(i, 0);
      for (std::size_t k = 1; k < nodes_[std::size_t(i)].inputs.size(); ++k)
        for (int other = input(i, k); other != common;)
          (other > common ? other : common) = above_[std::size_t(std::max(other, common))];
      above_[std::size_t(i)] = common;
    }
  }

  /// The layers after `from`, up to and including layer `to`, if branches can express these.
  std::vector<std::string> row(int from, int to) {
    std::vector<int> layers;
    for (int at = to; at != from; at = above_[std::size_t(at)]) {
      if (at < from || !written_.insert(at).second) {
        crosses_ = true;
        return {};
      }
      layers.push_back(at);
    }
    std::vector<std::string> items;
    for (; !layers.empty(); layers.pop_back()) {
      const graph_node& node = nodes_[std::size_t(layers.back())];
      if (node.inputs.size() == 1)
        append_layer(items, node);
      else
        items.push_back(join(node, layers.back()));
    }
    return items;
  }
  std::string join(const graph_node& node, int at) {
    std::vector<std::string> branches;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      std::vector<std::string> items = row(above_[std::size_t(at)], input(at, k));
      enlarge_branch(items, nodes_[std::size_t(input(at, k))], node);
      branches.push_back(joined_items(items));
    }
    if (node.text == "add" && branches.size() == 2 && branches[1].empty() && !branches[0].empty())
      return "residual<" + branches[0] + ">";
    for (std::string& b : branches) b = "branch<" + b + ">";
    return node.text + "<" + joined_items(branches) + ">";
  }
};

/// The type of the network with that architecture: Sequential and Functional models. Throws strata_error for a damaged
/// architecture.
inline network_text network_text_of(const nlohmann::json& architecture) {
  network_text out;
  STRATA_TRY { graph_writer(out, architecture.value("keras_version", "")).write(architecture); }
  STRATA_CATCH(const nlohmann::json::exception& e) { throw_error({"the architecture is not one of Keras: ", e.what()}); }
  return out;
}

}  // namespace strata::keras
