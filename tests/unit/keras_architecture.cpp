// needs: hdf5 libzip
// Architectures that no Keras writes: what does not compile is listed, and nothing overflows.
#include <doctest/doctest.h>

#include <strata/interop/keras/network_text.hpp>
#include <string>

#include "error_of.hpp"

using namespace strata;
using namespace strata::test;

namespace {

/// Of a Sequential model with one layer.
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
  CHECK(refused("[null, 6]", "Dense", R"("units": 4.5)") == "it (Dense): 4.5 is no whole number up to 16777216");
  CHECK(refused("[null, 6]", "Dense", R"("units": 4294967298)") == "it (Dense): 4294967298 is no whole number up to 16777216");
  CHECK(refused("[null, 6]", "Dense", R"("units": "4")") == "it (Dense): \"4\" is no whole number up to 16777216");
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
}

TEST_CASE("keras architecture: pixels that versions of Keras interpolate otherwise") {
  const auto of_version = [](const std::string& version) {
    return keras::network_text_of(keras::parse_architecture(
        "file",
        R"({"class_name": "Sequential", "keras_version": ")" + version +
            R"(", "config": [{"class_name": "UpSampling2D", "config": {"name": "it", "size": [2, 2], "interpolation": "bilinear",
                    "batch_input_shape": [null, 3, 3, 1]}}]})"));
  };
  CHECK(of_version("2.3.1").unknown[0].starts_with("it (UpSampling2D): Keras 2.3.1 interpolated otherwise"));
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
  CHECK(parse(R"({"a": NaN})") == "file: its architecture is no JSON object, in which numbers are finite");
  CHECK(parse("[]") == "file: its architecture is no JSON object, in which numbers are finite");
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
