// The type of a network, as text, from the architecture in a file of Keras.
// needs: hdf5 libzip
#pragma once
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <strata/base/error.hpp>
#include <strata/base/exceptions.hpp>
#include <strata/base/json.hpp>
#include <strata/base/text.hpp>
#include <strata/interop/hdf5.hpp>
#include <strata/io/zip_archive.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::keras {

/// config.json of a .keras file, or the model_config of a .h5 file. Throws strata::error for a file without it.
inline nlohmann::json read_architecture(const std::filesystem::path& path) {
  std::string text;
  if (path.string().ends_with(".keras")) {
    const io::zip_bytes member = io::zip_archive(path, "a .keras archive").read("config.json");
    text.assign(reinterpret_cast<const char*>(member.bytes.data()), member.bytes.size());
  } else {
    const auto attribute = hdf5_file(path).texts("", "model_config");
    if (!attribute || attribute->size() != 1)
      throw_error({path.string(), ": has weights, but no architecture: give the .keras or .h5 file of the whole model"});
    text = attribute->front();
  }
  nlohmann::json config = nlohmann::json::parse(text, nullptr, false);
  if (!config.is_object()) throw_error({path.string(), ": its architecture is no JSON object"});
  return config;
}

/// A network in C++, and what it lacks.
struct network_text {
  std::string type;                  // sequential<...>; empty if something is unknown
  std::vector<std::string> unknown;  // layers and options that strata does not have
  std::vector<std::string> notes;    // options that are left out, because they do not change predictions
};

using json = nlohmann::json;

/// A layer of the file.
struct graph_node {
  std::string name, class_name;
  json config, built;
  std::vector<std::string> inputs;
};

/// Writes layers as types. What it does not know goes to `unknown`.
class layer_writer {
  network_text& out_;
  const graph_node* of_ = nullptr;

 public:
  explicit layer_writer(network_text& out) : out_(out) {}

  void unknown(const std::string& why) { out_.unknown.push_back(of_->name + " (" + of_->class_name + "): " + why); }

  std::string text(const graph_node& node) {
    of_ = &node;
    const json& c = node.config;
    const std::string& k = node.class_name;
    for (const char* option : {"kernel_constraint", "bias_constraint", "embeddings_constraint", "gamma_constraint",
                               "beta_constraint", "activity_regularizer", "noise_shape", "lora_rank", "quantization_config"})
      if (c.contains(option) && !c[option].is_null()) unknown(std::string("there is no option ") + option);
    if (c.value("data_format", json("channels_last")) == "channels_first") unknown("channels come last: data_format");

    if (k == "Dense") {
      if (rank() > 2) unknown("dense takes one axis");
      return layer("dense", {whole("units")}, activation("activation"), bias(), parameters({"kernel", "bias"}));
    }
    if (k == "Conv2D")
      return layer("conv2d", {whole("filters"), whole("kernel_size", 0)}, pair_option("kernel_size", "kernel_size", true),
                   pair_option("stride", "strides"), pair_option("dilation", "dilation_rate"),
                   c.value("groups", 1) != 1 ? "groups<" + whole("groups") + ">" : "", padding(), activation("activation"),
                   bias(), parameters({"kernel", "bias"}));
    if (k == "Conv2DTranspose") {
      if (c.contains("output_padding") && !c["output_padding"].is_null()) unknown("there is no option output_padding");
      return layer("conv2d_transpose", {whole("filters"), whole("kernel_size", 0)},
                   pair_option("kernel_size", "kernel_size", true), pair_option("stride", "strides"),
                   pair_option("dilation", "dilation_rate"), padding(), activation("activation"), bias(),
                   parameters({"kernel", "bias"}));
    }
    if (k == "MaxPooling2D" || k == "AveragePooling2D") {
      const bool own_stride = c.contains("strides") && !c["strides"].is_null() && c["strides"] != c["pool_size"];
      return layer(k == "MaxPooling2D" ? "max_pool2d" : "average_pool2d", {whole("pool_size", 0)},
                   pair_option("pool_size", "pool_size", true), own_stride ? pair_option("stride", "strides", false, true) : "",
                   padding());
    }
    if (k == "GlobalAveragePooling2D" || k == "GlobalMaxPooling2D" || k == "GlobalAveragePooling1D" ||
        k == "GlobalMaxPooling1D") {
      if (c.value("keepdims", false)) unknown("there is no option keepdims: add reshape");
      return std::string(k.find("Max") != std::string::npos ? "global_max_pool" : "global_average_pool") +
             (k.ends_with("1D") ? "1d" : "2d");
    }
    if (k == "BatchNormalization") {
      last_axis();
      if (c.value("renorm", false)) unknown("there is no option renorm");
      return layer("batch_norm", {}, number_option("momentum", "momentum", 0.99), number_option("epsilon", "epsilon", 1e-3),
                   c.value("center", true) ? "" : "no_center", c.value("scale", true) ? "" : "no_scale",
                   parameters({"gamma", "beta"}));
    }
    if (k == "LayerNormalization") {
      last_axis();
      if (c.value("rms_scaling", false)) unknown("there is no option rms_scaling");
      return layer("layer_norm", {}, number_option("epsilon", "epsilon", 1e-3), c.value("center", true) ? "" : "no_center",
                   c.value("scale", true) ? "" : "no_scale", parameters({"gamma", "beta"}));
    }
    if (k == "Normalization") {
      last_axis();
      if (c.value("invert", false)) unknown("there is no option invert");
      if (c.contains("mean") && !c["mean"].is_null()) unknown("mean and variance are weights: adapt the layer");
      return "normalization";
    }
    if (k == "Embedding") {
      if (c.value("mask_zero", false)) unknown("there are no masks: mask_zero");
      return layer("embedding", {whole("input_dim"), whole("output_dim")}, parameters({"embeddings"}));
    }
    if (k == "Activation") {
      const std::string a = activation("activation");
      return "activation<" + (a.empty() ? "linear" : a) + ">";
    }
    if (k == "ReLU" || k == "LeakyReLU" || k == "ELU" || k == "Softmax") return "activation<" + activation_layer(k, c) + ">";
    if (k == "Dropout") return "dropout<" + decimal_text(c.at("rate")) + ">";
    if (k == "Flatten") return "flatten";
    if (k == "Reshape") return "reshape<" + numbers(c.at("target_shape")) + ">";
    if (k == "ZeroPadding2D") {
      const json& p = c.at("padding");
      if (p.is_number()) return "zero_padding2d<" + p.dump() + ">";
      if (p.at(0).is_number()) return "zero_padding2d<" + numbers(p) + ">";
      return "zero_padding2d<" + numbers(p.at(0)) + ", " + numbers(p.at(1)) + ">";
    }
    if (k == "UpSampling2D") {
      const std::string how = c.value("interpolation", "nearest");
      if (how != "nearest" && how != "bilinear") unknown("there is no interpolation " + how);
      return layer("up_sampling2d", {whole("size", 0)}, pair_option("sampling_size", "size", true),
                   how == "bilinear" ? "bilinear_interpolation" : "");
    }
    unknown("there is no such layer");
    return "";
  }

  /// Of a join; empty if there is no such join.
  std::string join(const graph_node& node) {
    of_ = &node;
    static const std::map<std::string, const char*> known{{"Add", "add"},           {"Average", "average"},
                                                          {"Maximum", "maximum"},   {"Multiply", "multiply"},
                                                          {"Subtract", "subtract"}, {"Concatenate", "concat"}};
    const auto at = known.find(node.class_name);
    if (at == known.end()) {
      unknown("there is no such layer of several inputs");
      return "";
    }
    if (node.class_name == "Concatenate") last_axis();
    return at->second;
  }

  std::string input(const graph_node& node) {
    of_ = &node;
    const json& c = node.config;
    const json& batch = c.contains("batch_shape") ? c["batch_shape"] : c.at("batch_input_shape");
    std::string text;
    for (std::size_t i = 1; i < batch.size(); ++i) {
      if (!batch[i].is_number_integer()) unknown("the extents of a sample have to be known");
      text += (i > 1 ? ", " : "") + batch[i].dump();
    }
    return "input<" + text + ">";
  }

 private:
  const json& config() const { return of_->config; }

  template <class... Option>
  static std::string layer(const char* name, std::vector<std::string> arguments, const Option&... option) {
    const auto add = [&](const std::string& text) {
      if (!text.empty()) arguments.push_back(text);
    };
    (add(option), ...);
    std::string text = name;
    text += '<';
    for (std::size_t i = 0; i < arguments.size(); ++i) text += (i > 0 ? ", " : "") + arguments[i];
    return text + '>';
  }

  static std::string numbers(const json& list) {
    std::string text;
    for (const json& n : list) text += (text.empty() ? "" : ", ") + std::to_string(n.get<int>());
    return text;
  }
  static std::string decimal_text(const json& number) { return json(number.get<double>()).dump() + "_r"; }

  /// A whole number, or element `index` of a list of them.
  std::string whole(const char* key, int index = -1) const {
    const json& value = config().at(key);
    return std::to_string((index >= 0 && value.is_array() ? value.at(std::size_t(index)) : value).get<int>());
  }
  /// name<a, b>, unless it is 1 or, if only_uneven, both are equal.
  std::string pair_option(const std::string& name, const char* key, bool only_uneven = false, bool also_1 = false) const {
    if (!config().contains(key) || config()[key].is_null()) return "";
    const std::string a = whole(key, 0), b = whole(key, 1);
    if (a == b) return only_uneven || (a == "1" && !also_1) ? "" : name + "<" + a + ">";
    return name + "<" + a + ", " + b + ">";
  }
  std::string number_option(const std::string& name, const char* key, double usual) const {
    const double value = config().value(key, usual);
    return value == usual ? "" : name + "<" + decimal_text(value) + ">";
  }
  std::string padding() {
    const std::string p = config().value("padding", "valid");
    if (p != "valid" && p != "same") unknown("there is no padding " + p);
    return p == "same" ? "same_padding" : "";
  }
  std::string bias() const { return config().value("use_bias", true) ? "" : "no_bias"; }

  /// Of the input with its batch; 0: unknown.
  std::size_t rank() const {
    if (!of_->built.is_object() || !of_->built.contains("input_shape")) return 0;
    const json& shape = of_->built["input_shape"];
    const json& first = shape.is_array() && !shape.empty() && shape[0].is_array() ? shape[0] : shape;
    return first.is_array() ? first.size() : 0;
  }
  void last_axis() {
    const json& axis = config().contains("axis") ? config()["axis"] : json(-1);
    const json& one = axis.is_array() && axis.size() == 1 ? axis[0] : axis;
    if (!one.is_number_integer() || (one != -1 && (rank() == 0 || one.get<std::size_t>() + 1 != rank())))
      unknown("works along axis " + axis.dump() + ", but only the last one is possible");
  }

  std::string activation_layer(const std::string& k, const json& c) {
    if (k == "ReLU") {
      const json most = c.value("max_value", json());
      const double slope = c.contains("negative_slope") && !c["negative_slope"].is_null() ? c["negative_slope"].get<double>() : 0;
      const bool threshold = c.contains("threshold") && !c["threshold"].is_null() && c["threshold"].get<double>() != 0;
      if (threshold || (!most.is_null() && (most.get<double>() != 6 || slope != 0)))
        unknown("there is no relu with these options");
      return slope != 0 ? "leaky_relu<" + decimal_text(slope) + ">" : most.is_null() ? "relu" : "relu6";
    }
    if (k == "LeakyReLU")
      return "leaky_relu<" + decimal_text(c.contains("negative_slope") ? c["negative_slope"] : c.value("alpha", json(0.3))) + ">";
    if (k == "ELU") return "elu<" + decimal_text(c.value("alpha", json(1.0))) + ">";
    if (k == "Softmax") {
      if (c.value("axis", json(-1)) != -1) unknown("softmax works along the last axis");
      return "softmax";
    }
    unknown("there is no activation " + k);
    return "linear";
  }
  /// Empty for linear.
  std::string activation(const char* key) {
    json a = config().value(key, json());
    if (a.is_object()) {
      const std::string k = a.value("class_name", "");
      if (k != "function") return activation_layer(k, a.value("config", json::object()));
      a = a.value("config", json());
    }
    if (a.is_null() || a == "linear") return "";
    static const std::map<std::string, const char*> known{
        {"relu", "relu"},       {"relu6", "relu6"},       {"leaky_relu", "leaky_relu<>"},
        {"elu", "elu<>"},       {"selu", "selu"},         {"gelu", "gelu"},
        {"silu", "silu"},       {"swish", "silu"},        {"tanh", "tanh_activation"},
        {"sigmoid", "sigmoid"}, {"softplus", "softplus"}, {"softsign", "softsign"},
        {"softmax", "softmax"}};
    const auto at = a.is_string() ? known.find(a.get<std::string>()) : known.end();
    if (at != known.end()) return at->second;
    unknown("there is no activation " + a.dump());
    return "";
  }

  /// The initializers and regularizers of these parameters, without those that are the defaults of strata and Keras.
  std::string parameters(const std::vector<std::string>& names) {
    std::string text;
    const auto add = [&](const std::string& option) {
      if (!option.empty()) text += (text.empty() ? "" : ", ") + option;
    };
    for (const std::string& name : names) {
      if (const json start = config().value(name + "_initializer", json()); !start.is_null()) {
        const std::string type = initializer(name, start);
        const char* usual = name == "kernel"       ? "glorot_uniform"
                            : name == "gamma"      ? "ones"
                            : name == "embeddings" ? "random_uniform<>"
                                                   : "zeros";
        if (!type.empty() && type != usual) add(name + "_initializer<" + type + ">");
      }
      if (const json penalty = config().value(name + "_regularizer", json()); !penalty.is_null()) {
        const json c = penalty.is_object() ? penalty.value("config", json::object()) : json::object();
        const double l1 = c.contains("l1") ? c["l1"].get<double>() : penalty == "l1" ? 0.01 : 0;
        const double l2 = c.contains("l2") ? c["l2"].get<double>() : penalty == "l2" ? 0.01 : 0;
        if (l1 == 0 && l2 == 0)
          unknown("there is no regularizer " + penalty.dump());
        else
          add(name + "_regularizer<" +
              (l2 == 0   ? "l1<" + decimal_text(l1)
               : l1 == 0 ? "l2<" + decimal_text(l2)
                         : "l1_l2<" + decimal_text(l1) + ", " + decimal_text(l2)) +
              ">>");
      }
    }
    return text;
  }
  std::string initializer(const std::string& parameter, const json& start) {
    const std::string k = start.is_object() ? start.value("class_name", "") : start.is_string() ? start.get<std::string>() : "";
    const json c = start.is_object() ? start.value("config", json::object()) : json::object();
    static const std::map<std::string, const char*> plain{{"Zeros", "zeros"},
                                                          {"Ones", "ones"},
                                                          {"GlorotUniform", "glorot_uniform"},
                                                          {"GlorotNormal", "glorot_normal"},
                                                          {"HeUniform", "he_uniform"},
                                                          {"HeNormal", "he_normal"},
                                                          {"LecunUniform", "lecun_uniform"},
                                                          {"LecunNormal", "lecun_normal"}};
    if (const auto at = plain.find(k); at != plain.end()) return at->second;
    const auto two = [&](const char* name, const char* a, double usual_a, const char* b, double usual_b) {
      const double x = c.value(a, usual_a), y = c.value(b, usual_b);
      return x == usual_a && y == usual_b ? std::string(name) + "<>"
                                          : std::string(name) + "<" + decimal_text(x) + ", " + decimal_text(y) + ">";
    };
    if (k == "Constant") return "constant<" + decimal_text(c.value("value", json(0.0))) + ">";
    if (k == "Orthogonal") return "orthogonal<" + decimal_text(c.value("gain", json(1.0))) + ">";
    if (k == "RandomUniform") return two("random_uniform", "minval", -0.05, "maxval", 0.05);
    if (k == "RandomNormal") return two("random_normal", "mean", 0, "stddev", 0.05);
    if (k == "TruncatedNormal") return two("truncated_normal", "mean", 0, "stddev", 0.05);
    out_.notes.push_back(of_->name + ": " + parameter + "_initializer " + (k.empty() ? start.dump() : k) + " is left out");
    return "";
  }
};

/// The names of the layers whose outputs a layer is called with; false if it is called in another way.
inline bool read_inputs(const json& nodes, std::vector<std::string>& inputs) {
  if (!nodes.is_array() || nodes.size() > 1) return false;  // called twice
  if (nodes.empty()) return true;
  const auto tensor = [&](const json& t) {
    const json& history = t.is_object() ? t.at("config").at("keras_history") : t;
    if (!history.is_array() || history.size() < 3 || !history[0].is_string() || history[1] != 0 || history[2] != 0) return false;
    inputs.push_back(history[0].get<std::string>());
    return true;
  };
  if (nodes[0].is_array()) return std::ranges::all_of(nodes[0], tensor);  // Keras 2: [["dense", 0, 0, {}], ...]
  const json& arguments = nodes[0].at("args");
  const json by_name = nodes[0].value("kwargs", json::object());
  for (const auto& [name, value] : by_name.items())
    if (value.is_object() && value.contains("class_name")) return false;  // a tensor by name
  if (arguments.size() != 1) return false;
  return arguments[0].is_array() ? std::ranges::all_of(arguments[0], tensor) : tensor(arguments[0]);
}

/// A graph from one input to one output, as layers in a row and joins of branches.
class graph_writer {
  network_text& out_;
  layer_writer layers_{out_};
  std::vector<graph_node> nodes_;  // each after its inputs
  std::map<std::string, int> number_;
  std::vector<int> above_;  // the nearest layer through which every way from the input to this one leads
  std::set<int> written_;

 public:
  explicit graph_writer(network_text& out) : out_(out) {}

  void read(const json& model) {
    const std::string kind = model.at("class_name");
    const json& config = model.at("config");
    if (kind != "Sequential" && kind != "Functional" && kind != "Model") {
      out_.unknown.push_back("the model is a " + kind + ", neither Sequential nor Functional");
      return;
    }
    std::vector<graph_node> read;
    for (const json& l : config.is_array() ? config : config.at("layers")) {
      graph_node n{"", l.at("class_name"), l.at("config"), l.value("build_config", json()), {}};
      n.name = l.contains("name") ? l["name"].get<std::string>() : n.config.value("name", n.class_name);
      if (n.class_name == "Sequential" || n.class_name == "Functional" || n.class_name == "Model") {
        out_.unknown.push_back(n.name + ": a model within the model");
        return;
      }
      if (kind == "Sequential") {
        if (read.empty() && n.class_name != "InputLayer") {
          if (!n.config.contains("batch_input_shape") && !n.config.contains("batch_shape")) {
            out_.unknown.push_back(n.name + ": the shape of the input is unknown: begin with keras.Input");
            return;
          }
          read.push_back({"input", "InputLayer", n.config, json(), {}});
        }
        if (!read.empty()) n.inputs = {read.back().name};
      } else if (!read_inputs(l.at("inbound_nodes"), n.inputs)) {
        out_.unknown.push_back(n.name + " (" + n.class_name + "): is called several times, or with several arguments");
        return;
      }
      read.push_back(std::move(n));
    }
    place(std::move(read));
  }

  /// After read(), if nothing is unknown.
  void write(const json& model) {
    int inputs = 0;
    for (const graph_node& n : nodes_) inputs += n.inputs.empty();
    if (nodes_.empty() || inputs != 1) {
      out_.unknown.push_back(detail::text_of({"the model has ", inputs, " inputs instead of one"}));
      return;
    }
    int last = int(nodes_.size()) - 1;
    if (const json& config = model.at("config"); config.is_object() && config.contains("output_layers")) {
      const json& outputs = config["output_layers"];
      const bool several = outputs.size() != 1 && !(outputs.size() == 3 && outputs[0].is_string());
      const json& one = outputs.size() == 1 ? outputs[0] : outputs;
      if (several || !number_.contains(one.at(0).get<std::string>())) {
        out_.unknown.push_back("the model has several outputs");
        return;
      }
      last = number_.at(one.at(0).get<std::string>());
    }
    find_above();
    std::string text = "sequential<\n    " + layers_.input(nodes_[0]);
    for (const std::string& item : row(0, last)) text += ",\n    " + item;
    for (int i = 1; i < int(nodes_.size()); ++i)
      if (!written_.contains(i)) out_.unknown.push_back(nodes_[std::size_t(i)].name + ": leads to no output");
    if (out_.unknown.empty()) out_.type = text + ">";
  }

 private:
  /// Puts each layer after its inputs.
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

  /// The items between two layers, without the first and with the last.
  std::vector<std::string> row(int from, int to) {
    std::vector<std::string> items;
    for (int at = to; at != from; at = above_[std::size_t(at)]) {
      const graph_node& node = nodes_[std::size_t(at)];
      if (at < from || !written_.insert(at).second) {
        out_.unknown.push_back(node.name + ": its output is used in a way that branches cannot express");
        return items;
      }
      const bool trains = node.config.value("trainable", true) || node.inputs.size() != 1;  // a join has no weights
      const std::string item = node.inputs.size() == 1 ? layers_.text(node) : join(node, at);
      static const std::string opened = "frozen<";
      if (trains)
        items.push_back(item);
      else if (!items.empty() && items.back().starts_with(opened))  // the one below it is frozen, too
        items.back().insert(opened.size(), item + ", ");
      else
        items.push_back(opened + item + '>');
    }
    std::ranges::reverse(items);
    return items;
  }
  std::string join(const graph_node& node, int at) {
    const std::string name = layers_.join(node);
    const auto joined = [](const std::vector<std::string>& items) {
      std::string text;
      for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
      return text;
    };
    std::vector<std::string> branches;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) branches.push_back(joined(row(above_[std::size_t(at)], input(at, k))));
    if (name == "add" && branches.size() == 2 && branches[1].empty() && !branches[0].empty())
      return "residual<" + branches[0] + ">";
    for (std::string& b : branches) b = "branch<" + b + ">";
    return name + "<" + joined(branches) + ">";
  }
};

/// The type of the network with that architecture: Sequential models, and Functional ones whose graph is made of rows and joins.
/// Throws strata::error for an architecture that is damaged.
inline network_text network_text_of(const nlohmann::json& architecture) {
  network_text out;
  STRATA_TRY {
    graph_writer graph(out);
    graph.read(architecture);
    if (out.unknown.empty()) graph.write(architecture);
  }
  STRATA_CATCH(const nlohmann::json::exception& e) { throw_error({"the architecture is not one of Keras: ", e.what()}); }
  return out;
}

}  // namespace strata::keras
