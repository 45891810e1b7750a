// needs: protozero
// Writes networks as ONNX files, and their predictions for random inputs: FOLDER/NAME.onnx, NAME.x and NAME.y, floats.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <strata/interop/onnx/save_onnx.hpp>
#include <strata/strata.hpp>
#include <string>
#include <vector>

#include "keras_networks.hpp"

using namespace strata;
using namespace strata::core;

namespace {

void write(const std::filesystem::path& path, std::span<const float> values) {
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(values.data()), std::streamsize(values.size_bytes()));
}

template <class Network>
void save(const std::filesystem::path& folder, const std::string& name) {
  constexpr std::size_t count = 5, in = std::size_t(Network::input_shape.size()), out = std::size_t(Network::output_shape.size());
  trainer model{Network{}, sgd{}, mean_squared_error{}};
  std::vector<float> weights(model.parameters().begin(), model.parameters().end());
  const auto trained = std::size_t(layout_of<typename Network::items>.trainable);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float u = float(philox{5}.uniform(i));
    weights[i] += i < trained ? 0.1f * (u - 0.5f) : 0.3f * u;  // variances stay positive
  }
  model.set_parameters(weights);
  std::vector<float> x(count * in), y(count * out);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(2 * philox{6}.uniform(i) - 1);
  using P = program<Network, mean_squared_error, sgd, type_list<>>;
  for (const row_table& table : row_tables_of_program<P>)
    for_each_row_name(table, x.data(), long(in), {0, int(count)},
                      [&](float& number, long, long) { number = std::floor(std::abs(number) * float(table.rows)); });
  model.predict(x, y);
  save_onnx(model, folder / (name + ".onnx"));
  write(folder / (name + ".x"), x);
  write(folder / (name + ".y"), y);
}

/// A user-defined operation.
struct doubling {
  static constexpr auto name = "doubling", class_name = "Doubling";
  static constexpr expected_shape output_shape(shape in) { return in; }
};

}  // namespace

int main(int argc, char** argv) {
  using activated = sequential<input<9>, dense<9, gelu_approximate>, dense<9, softplus>, dense<9, tanh_activation>,
                               activation<silu>, dense<4, selu>>;
  using strided =
      sequential<input<9, 8, 3>, conv2d<6, 3, same_padding, stride<2>>, conv2d_transpose<4, 3, stride<2>, same_padding>,
                 conv2d_transpose<2, 2, stride<3>, no_bias>, conv2d_transpose<3, 3, dilation<2>>, average_pool2d<3, same_padding>,
                 up_sampling2d<2>, cropping2d<1, 0, 2, 1>, flatten, dense<3>>;
  using tabular =
      sequential<input<3, 4>, concat<branch<columns<0, 1>, embedding<9, 5>, flatten>, branch<columns<1, 3>, flatten, dense<3>>>,
                 dense<3>>;
  if (argc != 2) return 2;
  try {
    const std::filesystem::path folder = argv[1];
    save<keras_networks::mlp>(folder, "mlp");
    save<keras_networks::cnn>(folder, "cnn");
    save<keras_networks::image>(folder, "image");
    save<keras_networks::graph>(folder, "graph");
    save<keras_networks::separated>(folder, "separated");
    save<keras_networks::tuned>(folder, "tuned");
    save<keras_networks::words>(folder, "words");
    save<tabular>(folder, "tabular");
    save<activated>(folder, "activated");
    save<strided>(folder, "strided");
  } catch (const strata_error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  using own = sequential<input<3>, doubling>;
  const std::vector<float> none;
  try {
    onnx::save(std::filesystem::path(argv[1]) / "own.onnx", detail::view_of_weights<own>(std::span<float>()));
  } catch (const strata_error& e) {
    std::printf("%s\n", e.what());
  }
}
