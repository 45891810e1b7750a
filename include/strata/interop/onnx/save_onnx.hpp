// save_onnx: a trained network as an ONNX graph for inference in other programs.
// needs: protozero
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/interop/onnx/onnx_graph.hpp>
#include <strata/io/atomic_file.hpp>
#include <strata/layers/conv2d.hpp>
#include <strata/layers/conv2d_transpose.hpp>
#include <strata/layers/depthwise_conv2d.hpp>
#include <strata/layers/normalization.hpp>
#include <strata/layers/pooling.hpp>
#include <strata/train/fitted_model.hpp>
#include <strata/train/model_view.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata {

namespace onnx {

/// Writes the operations of a network one by one. Values keep strata's layout, (N, H, W, C): for ONNX operators with channels
/// first, the graph has transpositions before and after them; runtimes cancel those between two operators.
class network_writer {
  const model_view& model_;
  graph graph_;
  std::vector<std::string> values_;  // by node
  std::vector<std::string> names_;   // of layers

  // State of the current node.
  int at_ = 0;

 public:
  static constexpr int operator_set = 20;

  explicit network_writer(const model_view& model)
      : model_(model), values_(model.nodes.size()), names_(detail::layer_names(model.nodes)) {
    detail::refuse_several_ends(model, "ONNX");
    for (; at_ < int(model.nodes.size()); ++at_) values_[std::size_t(at_)] = node().is_input() ? input() : operation();
    const core::tape_node& last = model.nodes.back();
    graph_.add("Identity", "output", {values_.back()});
    graph_.output("output", batch_of(last.out));
  }
  std::string file() const { return graph_.file("strata", operator_set); }

 private:
  const core::tape_node& node() const { return model_.nodes[std::size_t(at_)]; }
  const core::tape_node& node_of_input(int k = 0) const { return model_.nodes[std::size_t(node().input[k])]; }
  shape in() const { return node_of_input().out; }
  std::string x(int k = 0) const { return values_[std::size_t(node().input[k])]; }
  const std::string& name() const { return names_[std::size_t(node().layer_number)]; }
  int whole(std::size_t setting) const { return int(model_.operations[std::size_t(at_)][setting]); }
  double real(std::size_t setting) const { return model_.operations[std::size_t(at_)][setting]; }

  static std::vector<std::int64_t> batch_of(const shape& s) {
    std::vector<std::int64_t> extents{any_count};
    for (int i = 0; i < s.rank(); ++i) extents.push_back(s[i]);
    return extents;
  }
  std::string add(const char* type, std::vector<std::string> inputs, std::vector<attribute> attributes = {}) {
    return graph_.add(type, name(), inputs, attributes);
  }

  /// The elements of a parameter of this node, as float; empty if it has none of that name.
  std::vector<float> values_of(std::string_view parameter) const {
    for (const core::parameter_slot& s : model_.slots) {
      if (s.node != at_ || parameter != s.what.name) continue;
      std::vector<float> out(std::size_t(s.what.extents.size()));
      const std::byte* from = model_.bytes_of(s).data();
      for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = model_.element_size == sizeof(double) ? float(reinterpret_cast<const double*>(from)[i])
                                                       : reinterpret_cast<const float*>(from)[i];
      return out;
    }
    return {};
  }
  std::string constant(const char* parameter, const std::vector<std::int64_t>& extents, std::span<const float> values) {
    return graph_.constant(detail::text_of({name(), '/', parameter}), extents, values);
  }
  std::string parameter(const char* its_name, const std::vector<std::int64_t>& extents) {
    return constant(its_name, extents, values_of(its_name));
  }
  bool has(std::string_view parameter) const { return !values_of(parameter).empty(); }

  std::string channels_first(const std::string& value) {
    return add("Transpose", {value}, {{"perm", std::vector<std::int64_t>{0, 3, 1, 2}}});
  }
  std::string channels_last(const std::string& value) {
    return add("Transpose", {value}, {{"perm", std::vector<std::int64_t>{0, 2, 3, 1}}});
  }
  std::string reshaped(const std::string& value, const shape& to) {
    return add("Reshape", {value, graph_.constant(name() + "/shape", batch_of(to))});
  }

  std::string input() {
    const std::string made = graph_.unique(name());
    graph_.input(made, batch_of(node().out));
    return made;
  }

  std::string operation() {
    const std::string_view is = node().operation->name;
    if (node().operation->traits.only_trains) return x();
    if (is == "linear") return x();
    if (node().operation->traits.is_view) return reshaped(x(), node().out);
    if (is == "affine") return affine();
    if (is == "convolution")
      return convolution({whole(0), whole(1), whole(2), whole(3), whole(4), whole(5), whole(6), whole(7), whole(8) != 0},
                         "kernel");
    if (is == "depthwise_convolution") return depthwise_convolution();
    if (is == "pointwise_convolution")
      return convolution({.filters = whole(0), .kernel_height = 1, .kernel_width = 1}, "pointwise_kernel");
    if (is == "transposed_convolution") return transposed_convolution();
    if (is == "lookup") return add("Gather", {parameter("embeddings", {whole(0), whole(1)}), add("Cast", {x()}, {{"to", 7}})});
    if (is == "column_slice") return column_slice();
    if (is == "max_pooling") return pooling("MaxPool", {});
    if (is == "average_pooling") return pooling("AveragePool", {{"count_include_pad", 0}});
    if (is == "global_average_pooling2d") return global_pooling("ReduceMean");
    if (is == "global_max_pooling2d") return global_pooling("ReduceMax");
    if (is == "up_sampling") return up_sampling();
    if (is == "zero_padding")
      return add("Pad", {x(), graph_.constant(name() + "/pads", {0, whole(0), whole(2), 0, 0, whole(1), whole(3), 0})});
    if (is == "cropping")
      return add("Pad", {x(), graph_.constant(name() + "/pads", {0, -whole(0), -whole(2), 0, 0, -whole(1), -whole(3), 0})});
    if (is == "batch_normalization") return batch_normalization();
    if (is == "layer_normalization") return layer_normalization();
    if (is == "normalization") return normalization_of_data();
    if (is == "concat") return join("Concat", {{"axis", -1}});
    if (is == "add") return join("Sum");
    if (is == "average") return join("Mean");
    if (is == "maximum") return join("Max");
    if (is == "multiply") return one_by_one("Mul");
    if (is == "subtract") return one_by_one("Sub");
    return activation(is);
  }

  std::string activation(std::string_view is) {
    if (is == "relu") return add("Relu", {x()});
    if (is == "relu6") return add("Clip", {x(), graph_.constant(name() + "/min", 0.0f), graph_.constant(name() + "/max", 6.0f)});
    if (is == "leaky_relu") return add("LeakyRelu", {x()}, {{"alpha", float(real(0))}});
    if (is == "elu") return add("Elu", {x()}, {{"alpha", float(real(0))}});
    if (is == "selu") return add("Selu", {x()});
    if (is == "gelu") return add("Gelu", {x()});
    if (is == "gelu_approximate") return add("Gelu", {x()}, {{"approximate", "tanh"}});
    if (is == "silu") return add("Mul", {x(), add("Sigmoid", {x()})});
    if (is == "sigmoid") return add("Sigmoid", {x()});
    if (is == "tanh") return add("Tanh", {x()});
    if (is == "rescaling") {
      const std::string scaled = add("Mul", {x(), graph_.constant(name() + "/scale", float(real(0)))});
      return add("Add", {scaled, graph_.constant(name() + "/offset", float(real(1)))});
    }
    if (is == "hard_sigmoid") return add("HardSigmoid", {x()}, {{"alpha", 1.0f / 6}, {"beta", 0.5f}});
    if (is == "hard_silu") return add("HardSwish", {x()});
    if (is == "softplus") return add("Softplus", {x()});
    if (is == "softsign") return add("Softsign", {x()});
    if (is == "softmax") return add("Softmax", {x()}, {{"axis", -1}});
    throw_error({"save_onnx: layer ", name(), ": ONNX has no operator for ", is, ", or strata does not support it"});
  }

  std::string affine() {
    const std::int64_t inputs = in()[0], units = node().out[0];
    std::vector<std::string> all{x(), parameter("kernel", {inputs, units})};
    if (has("bias")) all.push_back(parameter("bias", {units}));
    return add("Gemm", all);
  }

  /// (height, width, in, out) -> (out, in, height, width); for the transposed one (height, width, out, in) -> (in, out, ...).
  std::string kernel(const char* parameter_name, const shape& extents) {
    const std::vector<float> from = values_of(parameter_name);
    std::vector<float> to(from.size());
    const std::size_t taps = std::size_t(extents[0]) * std::size_t(extents[1]), rows = std::size_t(extents[2]),
                      columns = std::size_t(extents[3]);
    for (std::size_t t = 0; t < taps; ++t)
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < columns; ++c) to[(c * rows + r) * taps + t] = from[(t * rows + r) * columns + c];
    return constant(parameter_name, {extents[3], extents[2], extents[0], extents[1]}, to);
  }
  static std::vector<std::int64_t> pads(const core::window_axis& vertical, const core::window_axis& horizontal) {
    const auto after = [](const core::window_axis& a) {
      return std::max(0, (a.out() - 1) * a.stride + a.reach() - a.in - a.padding());
    };
    return {vertical.padding(), horizontal.padding(), after(vertical), after(horizontal)};
  }
  std::string depthwise_convolution() {
    const core::depthwise_settings s{whole(0), whole(1), whole(2), whole(3), whole(4), whole(5), whole(6), whole(7) != 0};
    return convolution(s.on(in()), "depthwise_kernel");
  }
  std::string convolution(const core::conv_settings& s, const char* kernel_name) {
    const core::window_axis vertical{in()[0], s.kernel_height, s.stride_height, s.dilation_height, s.same},
        horizontal{in()[1], s.kernel_width, s.stride_width, s.dilation_width, s.same};
    std::vector<std::string> all{channels_first(x()),
                                 kernel(kernel_name, {s.kernel_height, s.kernel_width, in()[2] / s.groups, s.filters})};
    if (has("bias")) all.push_back(parameter("bias", {s.filters}));
    return channels_last(add("Conv", all,
                             {{"kernel_shape", std::vector<std::int64_t>{s.kernel_height, s.kernel_width}},
                              {"strides", std::vector<std::int64_t>{s.stride_height, s.stride_width}},
                              {"dilations", std::vector<std::int64_t>{s.dilation_height, s.dilation_width}},
                              {"group", s.groups},
                              {"pads", pads(vertical, horizontal)}}));
  }
  std::string transposed_convolution() {
    const core::transposed_conv_settings s{whole(0), whole(1), whole(2), whole(3), whole(4), whole(5), whole(6), whole(7) != 0};
    const shape out = s.output(in());
    // The windows are those of the convolution from the output to the input; the operator removes their padding.
    const core::window_axis vertical{out[0], s.kernel_height, s.stride_height, s.dilation_height, s.same},
        horizontal{out[1], s.kernel_width, s.stride_width, s.dilation_width, s.same};
    const auto full = [](int inputs, const core::window_axis& a) { return (inputs - 1) * a.stride + a.reach(); };
    const std::int64_t below = full(in()[0], vertical) - vertical.padding() - out[0],
                       right = full(in()[1], horizontal) - horizontal.padding() - out[1];
    const auto cut = [](std::int64_t n) { return std::max<std::int64_t>(0, n); };
    std::vector<std::string> all{channels_first(x()), kernel("kernel", {s.kernel_height, s.kernel_width, s.filters, in()[2]})};
    if (has("bias")) all.push_back(parameter("bias", {s.filters}));
    return channels_last(
        add("ConvTranspose", all,
            {{"kernel_shape", std::vector<std::int64_t>{s.kernel_height, s.kernel_width}},
             {"strides", std::vector<std::int64_t>{s.stride_height, s.stride_width}},
             {"dilations", std::vector<std::int64_t>{s.dilation_height, s.dilation_width}},
             {"pads", std::vector<std::int64_t>{vertical.padding(), horizontal.padding(), cut(below), cut(right)}},
             {"output_padding", std::vector<std::int64_t>{cut(-below), cut(-right)}}}));
  }

  std::string column_slice() {
    const auto one_number = [&](const char* what, std::int64_t value) {
      return graph_.constant(name() + what, std::vector<std::int64_t>{value});
    };
    return add("Slice", {x(), one_number("/begin", whole(0)), one_number("/end", whole(0) + whole(1)), one_number("/axis", -1)});
  }
  std::string pooling(const char* type, std::vector<attribute> attributes) {
    const core::pool_settings s{whole(0), whole(1), whole(2), whole(3), whole(4) != 0};
    const core::window_axis vertical = s.vertical(in()), horizontal = s.horizontal(in());
    attributes.push_back({"kernel_shape", std::vector<std::int64_t>{s.window_height, s.window_width}});
    attributes.push_back({"strides", std::vector<std::int64_t>{vertical.stride, horizontal.stride}});
    attributes.push_back({"pads", pads(vertical, horizontal)});
    return channels_last(add(type, {channels_first(x())}, std::move(attributes)));
  }
  std::string global_pooling(const char* type) {
    return add(type, {x(), graph_.constant(name() + "/axes", {1, 2})}, {{"keepdims", 0}});
  }
  std::string up_sampling() {
    const std::vector<float> scales{1, 1, float(whole(0)), float(whole(1))};
    const bool bilinear = whole(2) != 0;
    return channels_last(add("Resize", {channels_first(x()), "", graph_.constant(name() + "/scales", {4}, scales)},
                             {{"mode", bilinear ? "linear" : "nearest"},
                              {"coordinate_transformation_mode", bilinear ? "half_pixel" : "asymmetric"},
                              {"nearest_mode", "floor"}}));
  }

  /// x * factor + summand, with a factor and a summand for each channel.
  std::string scaled(std::span<const float> factors, std::span<const float> summands) {
    const std::vector<std::int64_t> channels{in().last()};
    return add("Add", {add("Mul", {x(), constant("factor", channels, factors)}), constant("summand", channels, summands)});
  }
  std::string batch_normalization() {
    const std::vector<float> gamma = values_of("gamma"), beta = values_of("beta"), mean = values_of("moving_mean"),
                             variance = values_of("moving_variance");
    std::vector<float> factors(mean.size()), summands(mean.size());
    for (std::size_t i = 0; i < mean.size(); ++i) {
      const double factor = (gamma.empty() ? 1.0 : double(gamma[i])) / std::sqrt(double(variance[i]) + real(1));
      factors[i] = float(factor);
      summands[i] = float((beta.empty() ? 0.0 : double(beta[i])) - double(mean[i]) * factor);
    }
    return scaled(factors, summands);
  }
  std::string normalization_of_data() {
    const std::vector<float> mean = values_of("mean"), variance = values_of("variance");
    std::vector<float> factors(mean.size()), summands(mean.size());
    for (std::size_t i = 0; i < mean.size(); ++i) {
      const double factor = 1 / std::sqrt(std::max(double(variance[i]), normalization::least_variance));
      factors[i] = float(factor), summands[i] = float(-double(mean[i]) * factor);
    }
    return scaled(factors, summands);
  }
  std::string layer_normalization() {
    const std::vector<std::int64_t> channels{in().last()};
    const std::vector<float> ones(std::size_t(in().last()), 1.0f);
    std::vector<std::string> all{x(), has("gamma") ? parameter("gamma", channels) : constant("gamma", channels, ones)};
    if (has("beta")) all.push_back(parameter("beta", channels));
    return add("LayerNormalization", all, {{"axis", -1}, {"epsilon", float(real(0))}});
  }

  std::string join(const char* type, std::vector<attribute> attributes = {}) {
    std::vector<std::string> all;
    for (int k = 0; k < node().arity; ++k) all.push_back(x(k));
    return add(type, std::move(all), std::move(attributes));
  }
  std::string one_by_one(const char* type) {
    std::string out = x(0);
    for (int k = 1; k < node().arity; ++k) out = add(type, {out, x(k)});
    return out;
  }
};

/// Throws strata_error for an operation that has no counterpart, and for weights that do not fit into an ONNX file.
inline void save(const std::filesystem::path& path, const model_view& model) {
  // A message of protobuf has less than 2 GiB.
  if (model.parameters.size() / model.element_size * sizeof(float) > 2'000'000'000)
    throw_error({"save_onnx: ", path.string(), ": an ONNX file must have less than 2 GiB of weights"});
  const std::string bytes = network_writer(model).file();
  io::atomic_file file(path);
  file.write(std::as_bytes(std::span(bytes)));
  file.commit();
}

}  // namespace onnx

/// The network of a trainer for inference: input (N, shape of the input...), output (N, shape of the output...), in float; N is
/// any number of samples. Layers that only train are left out. The file is complete or absent.
/// Throws strata_error for a layer of your own, which ONNX lacks; then nothing is written.
/// https://onnx.ai/onnx/operators
template <class Model>
  requires requires(const Model& model) { model.parameters(); }
void save_onnx(const Model& model, const std::filesystem::path& path) {
  using T = typename Model::value_type;
  const std::span<const T> arena = model.parameters();
  onnx::save(path, detail::view_of_weights<typename Model::network>(
                       std::span(const_cast<T*>(arena.data()), arena.size())));  // only reads
}

/// The same in a callback.
inline void save_onnx(fitted_model& model, const std::filesystem::path& path) { onnx::save(path, model.view()); }

}  // namespace strata
