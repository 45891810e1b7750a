// needs: hdf5 libzip
// Architectures that Keras does not write: layers that would not compile are listed, and nothing overflows.
#include <doctest/doctest.h>

#include <strata/interop/keras/keras_files.hpp>
#include <strata/interop/keras/network_text.hpp>
#include <strata/strata.hpp>
#include <string>

#include "error_of.hpp"
#include "scratch_folder.hpp"

using namespace strata;
using namespace strata::test;

namespace {

/// The network text of a Sequential model with one layer.
keras::network_text written(const std::string& batch_shape, const std::string& class_name, const std::string& config) {
  return keras::network_text_of(keras::parse_architecture(
      "file", R"({"class_name": "Sequential", "config": {"layers": [{"class_name": "InputLayer", "config": {"name": "input",
                  "batch_shape": )" +
                  batch_shape + R"(}}, {"class_name": ")" + class_name + R"(", "config": {"name": "it", )" + config + "}}]}}"));
}
std::string refused(const std::string& batch_shape, const std::string& class_name, const std::string& config) {
  const keras::network_text network = written(batch_shape, class_name, config);
  CHECK(network.type.empty());
  return network.unknown.empty() ? "" : network.unknown[0];
}

}  // namespace

TEST_CASE("keras architecture: numbers that are not whole, or too large") {
  CHECK(written("[null, 6]", "Dense", R"("units": 4.0)").type == "sequential<\n    input<6>,\n    dense<4>>");
  CHECK(refused("[null, 6]", "Dense", R"("units": 4.5)") == "it (Dense): 4.5 is not a whole number up to 16777216");
  CHECK(refused("[null, 6]", "Dense", R"("units": 4294967298)") == "it (Dense): 4294967298 is not a whole number up to 16777216");
  CHECK(refused("[null, 6]", "Dense", R"("units": "4")") == "it (Dense): \"4\" is not a whole number up to 16777216");
  CHECK(refused("[null, 6]", "Dense", R"("units": 0)") == "it (Dense): on (None, 6): dense needs at least one unit");
  CHECK(refused("[null, 70000]", "Dense", R"("units": 70000)") == "it (Dense): its kernel has more than 2147483632 numbers");
  CHECK(refused("[null, 60000, 60000]", "Flatten", R"("x": 0)") ==
        "input (InputLayer): its output has more than 2147483632 numbers");
  CHECK(refused("[null, 4, 4, 3]", "UpSampling2D", R"("size": [16777216, 1])") == "it (UpSampling2D): its numbers are too large");
  CHECK(refused("[null, 4, 4, 3]", "UpSampling2D", R"("size": [10000, 10000])") ==
        "it (UpSampling2D): its output has more than 2147483632 numbers");
  CHECK(refused("[null, 12]", "Reshape", R"("target_shape": [16777216, 16777216, 16777216])") ==
        "it (Reshape): on (None, 12): reshape must keep the number of elements");
  CHECK(refused("[null, 12]", "Reshape", R"("target_shape": [-1, -1])").ends_with("one of them may be -1 and is then computed"));
  CHECK(refused("[null, 4, 4, 3]", "MaxPooling2D", R"("pool_size": [5, 5])")
            .starts_with("it (MaxPooling2D): on (None, 4, 4, 3): the image is"));
  CHECK(refused("[null, 4]", "Dropout", R"("rate": 1)").starts_with("it (Dropout): the rate of dropout"));
  CHECK(refused("[null, 4]", "BatchNormalization", R"("epsilon": 0)").starts_with("it (BatchNormalization): the epsilon"));
  CHECK(refused("[null, 4]", "LeakyReLU", R"("alpha": -1)").starts_with("it (LeakyReLU): the slope"));
  CHECK(refused("[null, 4]", "ReLU", R"("max_value": 0.0)") == "it (ReLU): there is no relu with these options");
  CHECK(written("[null, 4]", "ReLU", R"("max_value": null)").type.ends_with("activation<relu>>"));
}

TEST_CASE("keras architecture: layers that strata has under another name or as a view") {
  const auto says = [](const char* layer) { return refused("[null, 4, 4, 3]", layer, R"("x": 0)"); };
  CHECK(says("RandomFlip") == "it (RandomFlip): there is no such layer, but the view data::random_flip");
  CHECK(says("LSTM") == "it (LSTM): there is no such layer");
}

TEST_CASE("keras architecture: numbers that a literal does not hold") {
  const auto constant = [](const std::string& value) {
    return R"("units": 2, "kernel_initializer": {"class_name": "Constant", "config": {"value": )" + value + "}}";
  };
  const auto text = [&](const std::string& value) { return written("[null, 4]", "Dense", constant(value)).type; };
  CHECK(text("123456789012345678901.0").ends_with("<constant<1.2345678901234568e+20_r>>>>"));
  CHECK(text("123456789012345.6").ends_with("<constant<123456789012345.6_r>>>>"));
  static_assert(double(1.2345678901234568e+20_r) == 123456789012345678901.0);
  for (const char* value : {"-1e-320", "1e39"})
    CHECK(refused("[null, 4]", "Dense", constant(value)) ==
          "it (Dense): " + nlohmann::json::parse(value).dump() + " is 0 or infinite as float");
}

TEST_CASE("keras architecture: inputs and calls") {
  CHECK(refused("[null, 4]", "InputLayer", R"("batch_shape": [null, 4])") == "it (InputLayer): is an input, but reads a layer");
  const auto called = [](const std::string& class_name, const std::string& nodes) {
    return keras::network_text_of(keras::parse_architecture(
        "file", R"({"class_name": "Functional", "config": {"layers": [{"name": "a", "class_name": "InputLayer", "config": {
                    "batch_shape": [null, 4]}, "inbound_nodes": []}, {"name": "it", "class_name": ")" +
                    class_name + R"(", "config": {"rate": 0.5, "units": 4}, "inbound_nodes": )" + nodes +
                    R"(}], "output_layers": [["it", 0, 0]]}})"));
  };
  const std::string at_inference = R"([[["a", 0, 0, {"training": false}]]])";
  CHECK(called("Dense", at_inference).type == "sequential<\n    input<4>,\n    dense<4>>");
  CHECK(called("Dropout", at_inference).unknown[0] == "it (Dropout): is called with training=false");
  CHECK(called("BatchNormalization", at_inference).unknown[0] == "it (BatchNormalization): is called with training=false");
  CHECK(called("Dropout", R"([{"args": [{"class_name": "__keras_tensor__", "config": {"keras_history": ["a", 0, 0]}}],
                               "kwargs": {"training": false}}])")
            .type.ends_with("dropout<0.5_r>>"));
  CHECK(called("Dense", "[]").unknown[0] == "it (Dense): reads no layer, but is not an input");
}

TEST_CASE("keras architecture: outputs") {
  const auto of = [](const std::string& layers, const std::string& outputs) {
    return keras::network_text_of(keras::parse_architecture(
        "file", R"({"class_name": "Functional", "config": {"layers": [)" + layers + R"(], "output_layers": )" + outputs + "}}"));
  };
  const std::string a = R"({"name": "a", "class_name": "InputLayer", "config": {"batch_shape": [null, 4]}, "inbound_nodes": []})";
  const std::string b = R"(, {"name": "b", "class_name": "Dense", "config": {"units": 2}, "inbound_nodes": [[["a", 0, 0]]]})";
  const std::string c = R"(, {"name": "c", "class_name": "Dense", "config": {"units": 3}, "inbound_nodes": [[["b", 0, 0]]]})";
  CHECK(of(a, R"(["a", 0, 0])").type == "sequential<\n    input<4>>");
  const keras::network_text two = of(a + b + c, R"([["b", 0, 0], ["c", 0, 0]])");
  CHECK(two.type == "graph<b, c>");
  CHECK(two.structs == "struct a : input<4> {};\nstruct b : node<a, dense<2>> {};\nstruct c : node<b, dense<3>> {};\n");
  CHECK(of(a + b, R"([["b", 0, 0], ["b", 0, 0]])").unknown == std::vector<std::string>{"b (Dense): is an output several times"});
  CHECK(of(a + b, R"([["a", 0, 0], ["b", 0, 0]])").unknown ==
        std::vector<std::string>{"a (InputLayer): is an input and an output"});
  std::string many = a, outputs;
  for (int k = 0; k < 9; ++k) {
    many += R"(, {"name": "n)" + std::to_string(k) +
            R"(", "class_name": "Dense", "config": {"units": 2}, "inbound_nodes": [[["a", 0, 0]]]})";
    outputs += (k ? R"(, ["n)" : R"([["n)") + std::to_string(k) + R"(", 0, 0])";
  }
  CHECK(of(many, outputs + "]").unknown == std::vector<std::string>{"a graph has at most 8 inputs and 8 outputs"});
  CHECK(contains(error_of([&] { (void)of("", "[]"); }), "the model has no layers"));
  CHECK(contains(error_of([&] { (void)of("", R"(["a", 0, 0])"); }), "the model has no layers"));
  CHECK(contains(error_of([&] { (void)of(a, R"(["z", 0, 0])"); }), "the output, layer \"z\", does not exist"));
  CHECK(contains(error_of([&] { (void)of(a, "[]"); }), "the model has no outputs"));
}

TEST_CASE("keras architecture: classes that only have the name of a layer of Keras") {
  const auto of_module = [](const std::string& more) {
    return keras::network_text_of(
        keras::parse_architecture("file", R"({"class_name": "Sequential", "config": [{"class_name": "Dense", )" + more +
                                              R"(, "config": {"name": "it", "units": 2, "batch_input_shape": [null, 3]}}]})"));
  };
  CHECK(of_module(R"("module": "keras.layers", "registered_name": null)").unknown.empty());
  CHECK(of_module(R"("module": "my_layers", "registered_name": "Dense")").unknown[0] ==
        "it (my_layers.Dense): there is no such layer");
  CHECK(of_module(R"("module": null, "registered_name": "mine>Dense")").unknown[0] ==
        "it (mine>Dense.Dense): there is no such layer");
  CHECK(of_module(R"("module": "my_keras_layers", "registered_name": null)").unknown[0] ==
        "it (my_keras_layers.Dense): there is no such layer");
  for (const char* module :
       {"keras.src.layers.core.dense", "keras.layers.core", "tf_keras.src.layers", "tensorflow.python.keras.layers"})
    CHECK(of_module(R"("module": ")" + std::string(module) + R"(", "registered_name": "Dense")").unknown.empty());
}

TEST_CASE("keras architecture: activations, regularizers and initializers of users with names of Keras") {
  const auto dense = [](const std::string& option, const std::string& object) {
    return written("[null, 4]", "Dense", R"("units": 2, ")" + option + R"(": {)" + object + "}");
  };
  const auto last = [](const keras::network_text& network) {
    return network.type.empty() ? network.unknown[0] : network.type.substr(network.type.rfind('\n') + 1);
  };
  const std::string function = R"("class_name": "function", "config": "swish", "registered_name": )";
  CHECK(last(dense("activation", R"("module": "builtins", )" + function + R"("function")")) == "    dense<2, silu>>");
  CHECK(last(dense("activation", R"("module": "keras.activations", )" + function + R"("swish")")) == "    dense<2, silu>>");
  CHECK(last(dense("activation", R"("module": "__main__", )" + function + R"("swish")")) ==
        R"(it (Dense): there is no activation "__main__.swish")");
  const std::string leaky = R"("class_name": "LeakyReLU", "config": {"negative_slope": 0.5}, )";
  CHECK(last(dense("activation", leaky + R"("module": "keras.layers")")) == "    dense<2, leaky_relu<0.5_r>>>");
  CHECK(last(dense("activation", leaky + R"("module": "my", "registered_name": "my>LeakyReLU")")) ==
        "it (Dense): there is no activation my.LeakyReLU");
  CHECK(last(dense("kernel_regularizer", R"("class_name": "L2", "config": {"l2": 0.5}, "module": "keras.regularizers")")) ==
        "    dense<2, kernel_regularizer<l2<0.5_r>>>>");
  for (const char* of_user : {R"("class_name": "L2", "config": {"l2": 0.5}, "module": "my", "registered_name": "my>L2")",
                              R"("class_name": "MyReg", "config": {"l2": 0.5})"})
    CHECK(last(dense("kernel_regularizer", of_user)).starts_with("it (Dense): there is no regularizer {"));
  const keras::network_text start = dense("kernel_initializer", R"("class_name": "HeUniform", "config": {}, "module": "my")");
  CHECK(start.notes[0] == "it: kernel_initializer my.HeUniform is omitted");
}

TEST_CASE("keras architecture: pixels that versions of Keras interpolate otherwise") {
  const auto of_version = [](const std::string& version) {
    return keras::network_text_of(keras::parse_architecture(
        "file",
        R"({"class_name": "Sequential", "keras_version": ")" + version +
            R"(", "config": [{"class_name": "UpSampling2D", "config": {"name": "it", "size": [2, 2], "interpolation": "bilinear",
                    "batch_input_shape": [null, 3, 3, 1]}}]})"));
  };
  CHECK(of_version("2.3.1").unknown[0].starts_with("it (UpSampling2D): Keras 2.3.1 interpolated differently"));
  CHECK(of_version("2.2.4-tf").notes.size() == 1);
  for (const char* version : {"2.3.0-tf", "2.6.0", "2.15.0", "3.15.1", ""}) {
    CHECK(of_version(version).unknown.empty());
    CHECK(of_version(version).notes.empty());
  }
}

TEST_CASE("keras architecture: text that is nested, too long or no JSON") {
  const auto parse = [](const std::string& text) { return error_of([&] { (void)keras::parse_architecture("file", text); }); };
  CHECK(parse(R"({"a": )" + std::string(1'000'000, '[')) == "file: its architecture is nested more than 200 levels deep");
  CHECK(parse(std::string(17'000'000, ' ')) == "file: its architecture has 17000000 bytes, more than 16777216");
  CHECK(parse(R"({"a": NaN})") == "file: its architecture is not a JSON object with finite numbers");
  CHECK(parse("[]") == "file: its architecture is not a JSON object with finite numbers");
  CHECK(parse("{}") == "no error");
  CHECK(parse(R"({"a": [{"b": 1, "b": 2}]})") == "file: its architecture has the key 'b' twice in one object");
  CHECK(parse(R"({"a": {"b": 1}, "c": [{"b": 2}, {"b": 3}]})") == "no error");
  const auto nested = [](std::size_t levels) { return R"({"a": )" + std::string(levels, '[') + std::string(levels, ']') + '}'; };
  CHECK(parse(nested(199)) == "no error");
  CHECK(parse(nested(200)) == "file: its architecture is nested more than 200 levels deep");
  CHECK(error_of([] {
          (void)keras::network_text_of(nlohmann::json::object());
        }).starts_with("the architecture is not one of Keras"));
}

TEST_CASE("a layer that Keras lacks is named; its weights can be written without an architecture") {
  const scratch_folder folder("columns");
  using net = sequential<input<4>, concat<branch<columns<0, 1>, embedding<3, 2>, flatten>, branch<columns<1, 3>>>, dense<2>>;
  trainer model{net{}, sgd{}, mean_squared_error{}}, other{net{}, sgd{}, mean_squared_error{}, seed(2)};
  const std::string file = (folder / "model.keras").string();
  CHECK(error_of([&] { model.save_weights(file); }) ==
        "cannot write " + file + ": layer columns: Keras has no layer Columns; a .weights.h5 file needs no architecture");
  model.save_weights(folder / "model.weights.h5");
  other.load_weights(folder / "model.weights.h5");
  CHECK(std::equal(model.parameters().begin(), model.parameters().end(), other.parameters().begin()));
}
