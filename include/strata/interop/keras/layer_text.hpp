// A layer of Keras as C++ text, and its output shape.
#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <strata/base/float_range.hpp>
#include <strata/base/json.hpp>
#include <strata/base/shape_text.hpp>
#include <strata/base/text.hpp>
#include <strata/layers/add.hpp>
#include <strata/layers/average.hpp>
#include <strata/layers/batch_norm.hpp>
#include <strata/layers/concat.hpp>
#include <strata/layers/conv2d.hpp>
#include <strata/layers/conv2d_transpose.hpp>
#include <strata/layers/cropping2d.hpp>
#include <strata/layers/dense.hpp>
#include <strata/layers/depthwise_conv2d.hpp>
#include <strata/layers/dropout.hpp>
#include <strata/layers/embedding.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/layers/global_pool1d.hpp>
#include <strata/layers/global_pool2d.hpp>
#include <strata/layers/input.hpp>
#include <strata/layers/maximum.hpp>
#include <strata/layers/multiply.hpp>
#include <strata/layers/pooling.hpp>
#include <strata/layers/reshape.hpp>
#include <strata/layers/separable_conv2d.hpp>
#include <strata/layers/subtract.hpp>
#include <strata/layers/up_sampling2d.hpp>
#include <strata/layers/zero_padding2d.hpp>
#include <strata/network/tape.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::keras {

using json = nlohmann::json;

/// A value of the file, in the form in which errors quote it.
inline std::string shown(const json& value) { return detail::shown(value.dump(-1, ' ', false, json::error_handler_t::replace)); }

/// The class of an object of the file, or the name of its function. Those of users, which may have the name of one of Keras, are
/// prefixed by their module: my.Dense. Keras 2 writes modules since 2.12, and functions as those of builtins.
inline std::string class_of(const json& object) {
  const auto text = [&](const char* key) {
    const auto at = object.find(key);
    return at != object.end() && at->is_string() ? at->get<std::string>() : "";
  };
  const std::string class_name = object.at("class_name"), registered = text("registered_name");
  const std::string module = object.contains("module") ? text("module") : "keras";
  const bool is_function = class_name == "function";
  static constexpr std::string_view of_keras[] = {"keras", "keras_core", "tf_keras", "tensorflow.keras",
                                                  "tensorflow.python.keras"};
  const bool is_own = std::ranges::any_of(of_keras, [&](std::string_view m) {
    return module.starts_with(m) && (module.size() == m.size() || module[m.size()] == '.');
  });
  const std::string name = is_function ? text("config") : class_name;
  if (registered.find('>') == registered.npos && (is_own || (is_function && module == "builtins"))) return name;
  return (module.empty() ? registered : module) + "." + name;
}

/// A network as C++ text, and what is unknown about it.
struct network_text {
  std::string structs;               // the nodes of a graph: struct image : input<28, 28, 1> {}; ...
  std::string type;                  // sequential<...> or graph<...>; empty if anything is unknown
  std::vector<std::string> unknown;  // layers and options without a counterpart in strata
  std::vector<std::string> notes;    // options left out because they do not affect predictions
};

/// A layer of the file, and its C++ text.
struct graph_node {
  std::string name, class_name;
  json config;
  std::vector<std::string> inputs;
  bool is_unknown = false;  // it has been added to `unknown`, and has no text
  std::string text{};
  std::optional<shape> out{};  // empty below an unknown layer
  bool is_batch = false;       // true for the input of the network, or a view of it
};

/// Writes layers as types, and computes their shapes with the functions of the layers themselves. Layers and options that are
/// unknown, or would not compile, are added to `unknown`.
class layer_writer {
  network_text& out_;
  std::string version_;  // version of Keras, such as 2.3.0-tf; may be empty
  const graph_node* of_ = nullptr;
  std::optional<shape> in_, made_;
  bool of_batch_ = false;
  int largest_ = 0;  // largest number among the settings of this layer

 public:
  layer_writer(network_text& out, std::string version) : out_(out), version_(std::move(version)) {}

  /// Whether `small` is one pixel of as many channels as `image`, to which Keras' joins enlarge it.
  static bool is_enlarged_to(const shape& small, const shape& image) {
    return small.rank() == 3 && image.rank() == 3 && small[0] == 1 && small[1] == 1 && small[2] == image[2] &&
           image[0] * image[1] > 1;
  }

  void unknown(const graph_node& node, const std::string& why) {
    out_.unknown.push_back(node.name + " (" + node.class_name + "): " + why);
  }

  /// Sets the text and the output of a layer whose inputs have been written.
  void write(graph_node& node, std::span<const graph_node* const> inputs) {
    of_ = &node;
    in_ = inputs.empty() ? std::nullopt : inputs[0]->out;
    made_.reset();
    largest_ = 0;
    of_batch_ = !inputs.empty() && inputs[0]->is_batch;
    if (inputs.empty() != (node.class_name == "InputLayer"))
      unknown(inputs.empty() ? "reads no layer, but is not an input" : "is an input, but reads a layer");
    node.text = node.class_name == "InputLayer" ? input() : inputs.size() > 1 ? join(inputs) : layer();
    node.out = made_;
    node.is_batch =
        node.class_name == "InputLayer" || (of_batch_ && (node.class_name == "Flatten" || node.class_name == "Reshape"));
  }

 private:
  const json& config() const { return of_->config; }
  void unknown(const std::string& why) { unknown(*of_, why); }

  static bool countable(const shape& s) {
    double count = 1;
    for (int axis = 0; axis < s.rank(); ++axis) count *= s[axis];
    return count < std::numeric_limits<int>::max() - 15;
  }
  /// Sets the output shape of the layer, as a function of the input shape, if that is known.
  template <class F>
  void gives(F&& output_shape) {
    if (!in_) return;
    const long widest = std::max(in_->d0, in_->d1), most = std::numeric_limits<int>::max() / 8;
    if (largest_ > 1 && std::max<long>(largest_, widest) * largest_ > most && in_->rank() == 3)
      return unknown("its numbers are too large");
    const core::expected_shape out = output_shape(*in_);
    if (out.refused) return unknown("on " + detail::batch_shape_text(*in_) + ": " + out.why->words);
    if (!countable(out.value)) return unknown("its output has more than 2147483632 numbers");
    made_ = out.value;
  }
  /// Sets the output shape of a layer with such settings.
  template <class Settings>
  void gives_by(const Settings& settings) {
    gives([&](shape in) { return settings.output_shape(in); });
    if constexpr (requires { settings.kernel(*in_); })
      if (made_ && !countable(settings.kernel(*in_))) unknown("its kernel has more than 2147483632 numbers");
  }

  std::string layer() {
    const json& c = config();
    const std::string& k = of_->class_name;
    for (const char* option :
         {"kernel_constraint", "bias_constraint", "embeddings_constraint", "gamma_constraint", "beta_constraint",
          "depthwise_constraint", "pointwise_constraint", "activity_regularizer", "lora_rank", "quantization_config"})
      if (c.contains(option) && !c[option].is_null()) unknown(std::string("there is no option ") + option);
    if (c.value("data_format", json("channels_last")) == "channels_first") unknown("channels come last: data_format");

    if (k == "Dense") {
      const core::dense_settings s{.units = whole("units")};
      gives_by(s);
      return layer("dense", {text(s.units)}, activation("activation"), bias(), parameters({"kernel", "bias"}));
    }
    if (k == "Conv2D") {
      const core::conv_settings s{.filters = whole("filters"),
                                  .kernel_height = whole("kernel_size", 0),
                                  .kernel_width = whole("kernel_size", 1),
                                  .stride_height = whole("strides", 0, 1),
                                  .stride_width = whole("strides", 1, 1),
                                  .dilation_height = whole("dilation_rate", 0, 1),
                                  .dilation_width = whole("dilation_rate", 1, 1),
                                  .groups = whole("groups", 0, 1),
                                  .same = same()};
      gives_by(s);
      return layer("conv2d", {text(s.filters), text(s.kernel_height)}, uneven("kernel_size", s.kernel_height, s.kernel_width),
                   above_1("stride", s.stride_height, s.stride_width), above_1("dilation", s.dilation_height, s.dilation_width),
                   s.groups != 1 ? "channel_groups<" + text(s.groups) + ">" : "", s.same ? "same_padding" : "",
                   activation("activation"), bias(), parameters({"kernel", "bias"}));
    }
    if (k == "DepthwiseConv2D" || k == "SeparableConv2D") {
      const core::depthwise_settings s{.kernel_height = whole("kernel_size", 0),
                                       .kernel_width = whole("kernel_size", 1),
                                       .stride_height = whole("strides", 0, 1),
                                       .stride_width = whole("strides", 1, 1),
                                       .dilation_height = whole("dilation_rate", 0, 1),
                                       .dilation_width = whole("dilation_rate", 1, 1),
                                       .depth_multiplier = whole("depth_multiplier", 0, 1),
                                       .same = same()};
      const bool separable = k == "SeparableConv2D";
      const int filters = separable ? whole("filters") : 0;
      gives_by(s);
      if (separable && made_) {
        in_ = made_;
        gives_by(core::conv_settings{.filters = filters, .kernel_height = 1, .kernel_width = 1});
      }
      std::vector<std::string> arguments{text(s.kernel_height)};
      if (separable) arguments.insert(arguments.begin(), text(filters));
      return layer(separable ? "separable_conv2d" : "depthwise_conv2d", std::move(arguments),
                   uneven("kernel_size", s.kernel_height, s.kernel_width), above_1("stride", s.stride_height, s.stride_width),
                   above_1("dilation", s.dilation_height, s.dilation_width),
                   s.depth_multiplier != 1 ? "depth_multiplier<" + text(s.depth_multiplier) + ">" : "",
                   s.same ? "same_padding" : "", activation("activation"), bias(),
                   separable ? parameters({"depthwise", "pointwise", "bias"}) : parameters({"depthwise", "bias"}));
    }
    if (k == "Conv2DTranspose") {
      if (c.contains("output_padding") && !c["output_padding"].is_null()) unknown("there is no option output_padding");
      if (whole("groups", 0, 1) != 1) unknown("there is no option groups");
      const core::transposed_conv_settings s{.filters = whole("filters"),
                                             .kernel_height = whole("kernel_size", 0),
                                             .kernel_width = whole("kernel_size", 1),
                                             .stride_height = whole("strides", 0, 1),
                                             .stride_width = whole("strides", 1, 1),
                                             .dilation_height = whole("dilation_rate", 0, 1),
                                             .dilation_width = whole("dilation_rate", 1, 1),
                                             .same = same()};
      gives_by(s);
      return layer("conv2d_transpose", {text(s.filters), text(s.kernel_height)},
                   uneven("kernel_size", s.kernel_height, s.kernel_width), above_1("stride", s.stride_height, s.stride_width),
                   above_1("dilation", s.dilation_height, s.dilation_width), s.same ? "same_padding" : "",
                   activation("activation"), bias(), parameters({"kernel", "bias"}));
    }
    if (k == "MaxPooling2D" || k == "AveragePooling2D") {
      core::pool_settings s{.window_height = whole("pool_size", 0), .window_width = whole("pool_size", 1), .same = same()};
      const bool own_stride = c.contains("strides") && !c["strides"].is_null() && c["strides"] != c["pool_size"];
      if (own_stride) {
        s.stride_height = whole("strides", 0), s.stride_width = whole("strides", 1);
        if (s.stride_height < 1 || s.stride_width < 1) unknown(reasons::pooling_needs_positive_settings.words);
      }
      gives_by(s);
      return layer(k == "MaxPooling2D" ? "max_pool2d" : "average_pool2d", {text(s.window_height)},
                   uneven("pool_size", s.window_height, s.window_width),
                   own_stride ? "stride<" + pair(s.stride_height, s.stride_width) + ">" : "", s.same ? "same_padding" : "");
    }
    if (k == "GlobalAveragePooling2D" || k == "GlobalMaxPooling2D" || k == "GlobalAveragePooling1D" ||
        k == "GlobalMaxPooling1D") {
      const bool of_rows = k.ends_with("1D");
      gives([&](shape in) {
        const core::expected_shape image = of_rows ? detail::one_column::output_shape(in) : in;
        return image.refused ? image : detail::channels_of_image(image.value);
      });
      std::string pooled =
          std::string(k.find("Max") != std::string::npos ? "global_max_pool" : "global_average_pool") + (of_rows ? "1d" : "2d");
      if (!c.value("keepdims", false) || !made_) return pooled;
      made_ = of_rows ? shape{1, made_->d0} : shape{1, 1, made_->d0};
      return pooled + ", reshape<" + extents_of(*made_) + ">";
    }
    if (k == "BatchNormalization" || k == "LayerNormalization") {
      const bool of_batch = k == "BatchNormalization";
      last_axis();
      for (const char* option : {"renorm", "rms_scaling"})
        if (c.value(option, false)) unknown(std::string("there is no option ") + option);
      if (const double e = c.value("epsilon", 1e-3); !detail::is_positive_float(e))
        unknown(reasons::normalization_epsilon_must_be_positive_and_finite_as_float.words);
      if (const double m = of_batch ? c.value("momentum", 0.99) : 0; m < 0 || m >= 1)
        unknown(reasons::batch_norm_momentum_must_be_below_1.words);
      keeps_shape();
      return layer(of_batch ? "batch_norm" : "layer_norm", {}, of_batch ? number_option("momentum", "momentum", 0.99) : "",
                   number_option("epsilon", "epsilon", 1e-3), c.value("center", true) ? "" : "no_center",
                   c.value("scale", true) ? "" : "no_scale", parameters({"gamma", "beta"}));
    }
    if (k == "Normalization") {
      last_axis();
      if (c.value("invert", false)) unknown("there is no option invert");
      if (c.contains("mean") && !c["mean"].is_null()) unknown("mean and variance are weights: adapt the layer");
      keeps_shape();
      return "normalization";
    }
    if (k == "Rescaling") {
      for (const char* option : {"scale", "offset"})
        if (!c.value(option, json(0)).is_number()) {
          unknown(std::string(option) + " is not one number");
          return "";
        }
      keeps_shape();
      const double offset = c.value("offset", 0.0);
      return layer("rescaling", {decimal_text(c.value("scale", 1.0))}, offset == 0 ? "" : decimal_text(offset));
    }
    if (k == "Embedding") {
      if (c.value("mask_zero", false)) unknown("there are no masks: mask_zero");
      if (in_ && !of_batch_) unknown(reasons::embedding_takes_the_row_indices_of_the_batch.words);
      const core::embedding_settings s{.rows = whole("input_dim"), .width = whole("output_dim")};
      gives_by(s);
      return layer("embedding", {text(s.rows), text(s.width)}, parameters({"embeddings"}));
    }
    if (k == "Activation") {
      const std::string a = activation("activation");
      keeps_shape();
      return "activation<" + (a.empty() ? "linear" : a) + ">";
    }
    if (k == "ReLU" || k == "LeakyReLU" || k == "ELU" || k == "Softmax") {
      keeps_shape();
      return "activation<" + activation_layer(k, c) + ">";
    }
    if (k == "Dropout" || k == "SpatialDropout2D") {
      if (const double rate = c.at("rate"); !(rate >= 0 && rate < 1)) unknown(reasons::dropout_rate_must_be_below_1.words);
      if (k == "SpatialDropout2D" && in_ && in_->rank() != 3) unknown("takes images");
      const shape noise = k == "Dropout" ? noise_shape(c.value("noise_shape", json())) : in_ ? shape{1, 1, in_->last()} : shape{};
      keeps_shape();
      return "dropout<" + decimal_text(c.at("rate")) + (noise == shape{} ? "" : ", shape{" + extents_of(noise) + "}") + ">";
    }
    if (k == "Flatten") {
      gives([](shape in) { return flatten::output_shape(in); });
      return "flatten";
    }
    if (k == "Reshape") {
      std::vector<int> extents;
      double count = 1;
      for (const json& n : c.at("target_shape")) {
        extents.push_back(n.is_null() ? -1 : whole(n));
        count *= extents.back();
      }
      gives([&](shape in) -> core::expected_shape {
        if (std::abs(count) > in.size()) return reasons::reshape_must_keep_the_number_of_elements;
        return detail::reshaped(in, extents);
      });
      return "reshape<" + (made_ ? extents_of(*made_) : "") + ">";
    }
    if (k == "ZeroPadding2D" || k == "Cropping2D") {
      const bool crops = k == "Cropping2D";
      const json& p = c.at(crops ? "cropping" : "padding");
      const auto side = [&](std::size_t axis, std::size_t end) {
        const json& of_axis = p.is_array() ? p.at(axis) : p;
        return whole(of_axis.is_array() ? of_axis.at(end) : of_axis);
      };
      const core::padding_settings s{side(0, 0), side(0, 1), side(1, 0), side(1, 1)};
      if (!crops && s.has_negative()) unknown(reasons::zero_padding2d_must_not_be_negative.words);
      gives([&](shape in) { return crops ? core::cropped(in, s) : s.output_shape(in); });
      const bool even = s.top == s.bottom && s.left == s.right;
      return (crops ? "cropping2d<" : "zero_padding2d<") +
             (even ? (s.top == s.left ? text(s.top) : pair(s.top, s.left))
                   : pair(s.top, s.bottom) + ", " + pair(s.left, s.right)) +
             ">";
    }
    if (k == "UpSampling2D") {
      const std::string how = c.value("interpolation", "nearest");
      if (how != "nearest" && how != "bilinear") unknown("there is no interpolation " + how);
      if (how == "bilinear" && version_ == "2.2.4-tf")
        out_.notes.push_back(of_->name + ": TensorFlow before 1.15 interpolated differently");
      else if (how == "bilinear" && is_before_2_4() && !version_.ends_with("-tf"))
        unknown("Keras " + version_ + " interpolated differently: the centres of pixels were different");
      const core::up_sampling_settings s{.sampling_height = whole("size", 0), .sampling_width = whole("size", 1)};
      gives_by(s);
      return layer("up_sampling2d", {text(s.sampling_height)}, uneven("sampling_size", s.sampling_height, s.sampling_width),
                   how == "bilinear" ? "bilinear_interpolation" : "");
    }
    static const std::map<std::string_view, const char*> instead{{"RandomFlip", "the view data::random_flip"},
                                                                 {"RandomTranslation", "the view data::random_translation"},
                                                                 {"RandomRotation", "the view data::random_rotation"},
                                                                 {"RandomZoom", "the view data::random_zoom"},
                                                                 {"RandomContrast", "the view data::random_contrast"}};
    const auto at = instead.find(k);
    unknown(at == instead.end() ? "there is no such layer" : std::string("there is no such layer, but ") + at->second);
    return "";
  }

  /// The name of the join; empty if strata has none of that kind.
  std::string join(std::span<const graph_node* const> inputs) {
    struct known_join {
      const char* name;
      core::expected_shape (*output_shape)(std::span<const shape>);
    };
    static const std::map<std::string, known_join> known{{"Add", {"add", core::sum_of_branches::output_shape}},
                                                         {"Average", {"average", core::mean_of_branches::output_shape}},
                                                         {"Maximum", {"maximum", core::largest_of_branches::output_shape}},
                                                         {"Multiply", {"multiply", core::product_of_branches::output_shape}},
                                                         {"Subtract", {"subtract", core::difference_of_branches::output_shape}},
                                                         {"Concatenate", {"concat", core::stack_of_branches::output_shape}}};
    const auto at = known.find(of_->class_name);
    if (at == known.end()) {
      unknown("there is no such layer of several inputs");
      return "";
    }
    if (of_->class_name == "Concatenate") last_axis();
    if (inputs.size() > std::size_t(core::max_inputs)) unknown(reasons::a_join_takes_at_most_8_branches.words);
    std::vector<shape> shapes;
    std::string shown;
    for (const graph_node* input : inputs) {
      if (!input->out) return at->second.name;
      shown += (shapes.empty() ? "" : ", ") + detail::batch_shape_text(*input->out);
      shapes.push_back(*input->out);
    }
    // One pixel beside an image is enlarged to it: see graph_writer::join.
    if (of_->class_name != "Concatenate")
      for (shape& s : shapes) {
        const auto image = std::ranges::find_if(shapes, [&](const shape& to) { return is_enlarged_to(s, to); });
        if (image != shapes.end()) s = *image;
      }
    const core::expected_shape out = at->second.output_shape(shapes);
    if (out.refused)
      unknown("on " + shown + ": " + out.why->words);
    else if (!countable(out.value))
      unknown("its output has more than 2147483632 numbers");
    else
      made_ = out.value;
    return at->second.name;
  }

  std::string input() {
    const json& c = config();
    const json batch = c.contains("batch_shape") ? c["batch_shape"] : c.value("batch_input_shape", json());
    if (!batch.is_array()) {
      unknown("the shape of the input is unknown: begin with keras.Input");
      return "";
    }
    shape extents;
    for (std::size_t i = 1; i < batch.size() && i <= 4; ++i) {
      if (!batch[i].is_number_integer()) {
        unknown("the extents of a sample have to be known, but are " + shown(batch));
        return "";
      }
      extents[int(i) - 1] = whole(batch[i]);
    }
    if (extents.rank() + 1 != int(batch.size()) || batch.size() < 2)
      unknown(shown(batch) + ": " + reasons::input_takes_one_to_four_positive_extents.words);
    else if (!countable(extents))
      unknown("its output has more than 2147483632 numbers");
    else
      made_ = extents;
    return "input<" + extents_of(extents) + ">";
  }

  void keeps_shape() { made_ = in_; }

  template <class... Option>
  static std::string layer(const char* name, std::vector<std::string> arguments, const Option&... option) {
    const auto add = [&](const std::string& text) {
      if (!text.empty()) arguments.push_back(text);
    };
    (add(option), ...);
    return name + ("<" + detail::joined(arguments.size(), ", ", [&](std::size_t i) { return arguments[i]; }) + ">");
  }

  bool is_before_2_4() const {
    return version_.size() > 3 && version_.starts_with("2.") && version_[2] < '4' && version_[3] == '.';
  }

  static std::string text(int number) { return std::to_string(number); }
  static std::string pair(int a, int b) { return a == b ? text(a) : text(a) + ", " + text(b); }
  static std::string uneven(const char* option, int a, int b) {
    return a == b ? "" : std::string(option) + "<" + pair(a, b) + ">";
  }
  static std::string above_1(const char* option, int a, int b) {
    return a == 1 && b == 1 ? "" : std::string(option) + "<" + pair(a, b) + ">";
  }
  static std::string extents_of(const shape& s) {
    return detail::joined(std::size_t(s.rank()), ", ", [&](std::size_t i) { return text(s[int(i)]); });
  }
  /// The shortest text of the number. Keras 2 writes 0.3, a float, as 0.30000001192092896.
  std::string decimal_text(double number) {
    if (const double size = std::abs(number); size > detail::largest_float || (size > 0 && size < detail::smallest_float)) {
      unknown(shown(number) + " is 0 or infinite as float");
      return "0_r";
    }
    char text[32];
    const auto single = static_cast<float>(number);
    // A literal of strata has at most 18 digits before its exponent.
    const auto end = double(single) == number  ? std::to_chars(text, std::end(text), single)
                     : std::abs(number) < 1e15 ? std::to_chars(text, std::end(text), number)
                                               : std::to_chars(text, std::end(text), number, std::chars_format::scientific);
    return std::string(text, end.ptr) + "_r";
  }
  /// Keras 2 writes some numbers as {"type": "ndarray", "value": 0.3}.
  static double real(const json& config, const char* key, double usual) {
    const json value = config.value(key, json());
    return value.is_null() ? usual : value.is_object() ? value.at("value").get<double>() : value.get<double>();
  }

  int whole(const json& value) {
    constexpr int most = 1 << 24;
    const double number = value.is_number() ? value.get<double>() : 0.5;
    if (number != std::floor(number) || std::abs(number) > most) {
      unknown(shown(value) + " is not a whole number up to 16777216");
      return 1;
    }
    largest_ = std::max(largest_, int(number));
    return int(number);
  }
  /// An integer, or element `index` of a list of integers.
  int whole(const char* key, std::size_t index = 0) {
    const json& value = config().at(key);
    return whole(value.is_array() ? value.at(index) : value);
  }
  int whole(const char* key, std::size_t index, int usual) {
    return config().contains(key) && !config()[key].is_null() ? whole(key, index) : usual;
  }
  std::string number_option(const std::string& name, const char* key, double usual) {
    const double value = config().value(key, usual);
    return value == usual ? "" : name + "<" + decimal_text(value) + ">";
  }
  bool same() {
    const std::string p = config().value("padding", "valid");
    if (p != "valid" && p != "same") unknown("there is no padding " + p);
    return p == "same";
  }
  std::string bias() const { return config().value("use_bias", true) ? "" : "no_bias"; }

  /// Checks that an axis is the last one. Axes include the batch. Below an unknown layer, a non-negative axis cannot be checked.
  void last_axis() { last_axis(config().value("axis", json(-1))); }
  void last_axis(const json& axis) {
    const json& one = axis.is_array() && axis.size() == 1 ? axis[0] : axis;
    if (one == -1 || (one.is_number_integer() && one > 0 && (!in_ || one == in_->rank()))) return;
    unknown("works along axis " + shown(axis) + (in_ ? " of " + detail::batch_shape_text(*in_) : "") +
            ", but only the last one is possible");
  }
  /// The extents of the noise of dropout, or shape{} if it is as large as a sample.
  shape noise_shape(const json& noise) {
    if (noise.is_null() || !in_) return {};
    shape s = *in_;
    if (!noise.is_array() || noise.size() != std::size_t(s.rank()) + 1 || !noise[0].is_null()) {
      unknown("its noise_shape is not null for the samples and an extent for each axis");
      return {};
    }
    for (int axis = 0; axis < s.rank(); ++axis)
      if (const json& n = noise[std::size_t(axis) + 1]; !n.is_null() && n != s[axis]) {
        if (n != 1) unknown(reasons::the_noise_shape_of_dropout_has_each_extent_of_the_input_or_1.words);
        s[axis] = 1;
      }
    return s == *in_ ? shape{} : s;
  }

  std::string activation_layer(const std::string& k, const json& c) {
    const auto leaky = [&](double slope) {
      if (slope < 0) unknown(reasons::leaky_relu_slope_must_not_be_negative.words);
      return "leaky_relu<" + decimal_text(slope) + ">";
    };
    if (k == "ReLU") {
      constexpr double none = std::numeric_limits<double>::infinity();
      const double most = real(c, "max_value", none), slope = real(c, "negative_slope", 0);
      if (real(c, "threshold", 0) != 0 || (most != none && (most != 6 || slope != 0)))
        unknown("there is no relu with these options");
      return slope != 0 ? leaky(slope) : most == none ? "relu" : "relu6";
    }
    if (k == "LeakyReLU") return leaky(real(c, "negative_slope", real(c, "alpha", 0.3)));
    if (k == "ELU") {
      const double alpha = real(c, "alpha", 1);
      if (alpha < 0) unknown(reasons::elu_alpha_must_not_be_negative.words);
      return "elu<" + decimal_text(alpha) + ">";
    }
    if (k == "Softmax") {
      last_axis(c.value("axis", json(-1)));
      return "softmax";
    }
    unknown("there is no activation " + k);
    return "linear";
  }
  /// The name of the activation; empty for linear.
  std::string activation(const char* key) {
    json a = config().value(key, json());
    if (a.is_object()) {
      if (a.value("class_name", "") != "function") return activation_layer(class_of(a), a.value("config", json::object()));
      a = class_of(a);
    }
    if (a.is_null() || a == "linear") return "";
    if (a == "hard_sigmoid" && version_.starts_with("2."))
      unknown("Keras 2 computes another hard_sigmoid, min(max(0.2 x + 0.5, 0), 1)");
    static const std::map<std::string, const char*> known{{"relu", "relu"},
                                                          {"relu6", "relu6"},
                                                          {"leaky_relu", "leaky_relu<>"},
                                                          {"elu", "elu<>"},
                                                          {"selu", "selu"},
                                                          {"gelu", "gelu"},
                                                          {"silu", "silu"},
                                                          {"swish", "silu"},
                                                          {"tanh", "tanh_activation"},
                                                          {"sigmoid", "sigmoid"},
                                                          {"softplus", "softplus"},
                                                          {"softsign", "softsign"},
                                                          {"softmax", "softmax"},
                                                          {"hard_sigmoid", "hard_sigmoid"},
                                                          {"hard_silu", "hard_silu"},
                                                          {"hard_swish", "hard_silu"}};
    const auto at = a.is_string() ? known.find(a.get<std::string>()) : known.end();
    if (at != known.end()) return at->second;
    unknown("there is no activation " + shown(a));
    return "";
  }

  /// The initializers and regularizers of these parameters, except those that are defaults of both strata and Keras.
  std::string parameters(const std::vector<std::string>& names) {
    std::string text;
    const auto add = [&](const std::string& option) {
      if (!option.empty()) text += (text.empty() ? "" : ", ") + option;
    };
    for (const std::string& name : names) {
      if (const json start = config().value(name + "_initializer", json()); !start.is_null()) {
        const std::string type = initializer(name, start);
        const char* usual = name == "kernel" || name == "depthwise" || name == "pointwise" ? "glorot_uniform"
                            : name == "gamma"                                              ? "ones"
                            : name == "embeddings"                                         ? "random_uniform<>"
                                                                                           : "zeros";
        if (!type.empty() && type != usual) add(name + "_initializer<" + type + ">");
      }
      if (const json penalty = config().value(name + "_regularizer", json()); !penalty.is_null()) {
        const json c = penalty.is_object() ? penalty.value("config", json::object()) : json::object();
        const std::string k = penalty.is_object() ? class_of(penalty) : "L1L2";
        const double l1 = c.contains("l1") ? c["l1"].get<double>() : penalty == "l1" ? 0.01 : 0;
        const double l2 = c.contains("l2") ? c["l2"].get<double>() : penalty == "l2" ? 0.01 : 0;
        if ((k != "L1" && k != "L2" && k != "L1L2") || (l1 == 0 && l2 == 0) || !detail::is_penalty_factor(l1) ||
            !detail::is_penalty_factor(l2))
          unknown("there is no regularizer " + shown(penalty));
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
    const std::string k = start.is_object() ? class_of(start) : start.is_string() ? start.get<std::string>() : "";
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
    if (k == "VarianceScaling") {  // written by Keras 2 for the names above
      const std::string mode = c.value("mode", ""), distribution = c.value("distribution", "");
      const double scale = c.value("scale", 1.0);
      const std::string name = mode == "fan_avg" && scale == 1  ? "glorot"
                               : mode == "fan_in" && scale == 2 ? "he"
                               : mode == "fan_in" && scale == 1 ? "lecun"
                                                                : "";
      if (!name.empty() && (distribution == "uniform" || distribution == "normal" || distribution == "truncated_normal"))
        return name + (distribution == "uniform" ? "_uniform" : "_normal");
    }
    const auto numbers = [&](const char* type, double a, double usual_a, double b, double usual_b) {
      return a == usual_a && b == usual_b ? std::string(type) + "<>"
                                          : std::string(type) + "<" + decimal_text(a) + ", " + decimal_text(b) + ">";
    };
    if (k == "Constant" && c.value("value", json(0)).is_number()) return "constant<" + decimal_text(c.value("value", 0.0)) + ">";
    if (k == "Orthogonal") return "orthogonal<" + decimal_text(c.value("gain", 1.0)) + ">";
    if (const double low = real(c, "minval", -0.05), high = real(c, "maxval", 0.05); k == "RandomUniform" && low <= high)
      return numbers("random_uniform", low, -0.05, high, 0.05);
    if (const double mean = real(c, "mean", 0), deviation = real(c, "stddev", 0.05);
        (k == "RandomNormal" || k == "TruncatedNormal") && deviation >= 0)
      return numbers(k == "RandomNormal" ? "random_normal" : "truncated_normal", mean, 0, deviation, 0.05);
    out_.notes.push_back(of_->name + ": " + parameter + "_initializer " + (k.empty() ? shown(start) : k) + " is omitted");
    return "";
  }
};

}  // namespace strata::keras
