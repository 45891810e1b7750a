// needs: hdf5 libzip
// The other half of test_keras_files.py: keras_files NETWORK OPTIMIZER FOLDER [FILE]. Loads the weights, and the state of the
// optimizer, from FILE, or else trains three steps; writes FOLDER/ours.keras, .weights.h5, .h5 and the predictions; prints the
// losses of further steps. FOLDER has the data: x as float, y as int32.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <strata/interop/keras/keras_files.hpp>
#include <string>
#include <vector>

#include "keras_networks.hpp"
using namespace strata;
using namespace strata::core;

namespace {

template <class T>
std::vector<T> read(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
  return out;
}

template <class Network, class Optimizer>
int run(const Optimizer& optimizer, const std::string& folder, const char* file) {
  trainer model{Network{}, optimizer, sparse_categorical_crossentropy{}, accuracy{}};
  const std::vector<float> x = read<float>(folder + "/x");
  const std::vector<std::int32_t> y = read<std::int32_t>(folder + "/y");
  const samples<float> batch(x.data(), y.data(), int(y.size()));
  const auto step = [&] {
    const metric_sum loss = model.train_step(batch)[0];
    return loss.sum / loss.count;
  };
  if (file)
    model.load_weights(file);
  else
    for (int i = 0; i < 3; ++i) (void)step();

  std::vector<float> predictions(y.size() * std::size_t(Network::output_shape.size()));
  model.predict(std::span<const float>(x), predictions);
  std::ofstream(folder + "/predictions", std::ios::binary)
      .write(reinterpret_cast<const char*>(predictions.data()), std::streamsize(predictions.size() * sizeof(float)));
  for (const char* name : {"/ours.keras", "/ours.weights.h5", "/ours.h5"}) model.save_weights(folder + name);
  std::printf("%.9g\n", model.learning_rate());
  for (int i = 0; i < 3; ++i) std::printf("%.9g\n", step());
  return 0;
}

struct photo : input<6, 6, 2> {};
struct tags : input<6> {};
struct seen : node<photo, conv2d<4, 3, relu>, batch_norm<>, flatten> {};
struct both : node<concat<tags, seen>, dense<8, relu>> {};
struct kind : node<both, dense<5, softmax>> {};
struct box : node<concat<both, tags>, dense<2>> {};

/// The same for a graph of several inputs and outputs. The tags are the first numbers of a photo, the boxes the last ones. The
/// predictions of an output are behind those of the one before.
int run_several_ends(const std::string& folder, const char* file) {
  trainer model{graph<kind, box>{}, sgd{.learning_rate = 0.01}, compare<kind>(sparse_categorical_crossentropy{}),
                compare<box>(mean_squared_error{})};
  const std::vector<float> x = read<float>(folder + "/x");
  const std::vector<std::int32_t> y = read<std::int32_t>(folder + "/y");
  std::vector<float> words, boxes;
  for (std::size_t i = 0; i < y.size(); ++i) {
    words.insert(words.end(), x.begin() + long(72 * i), x.begin() + long(72 * i + 6));
    boxes.insert(boxes.end(), x.begin() + long(72 * i + 70), x.begin() + long(72 * i + 72));
  }
  if (file)
    model.load_weights(file);
  else
    for (int i = 0; i < 3; ++i) model.train_step(of<photo>(x), of<tags>(words), of<kind>(y), of<box>(boxes));
  const auto [kinds, places] = model.predict(of<photo>(x), of<tags>(words));
  std::ofstream out(folder + "/predictions", std::ios::binary);
  for (const auto* values : {&kinds.values, &places.values})
    out.write(reinterpret_cast<const char*>(values->data()), std::streamsize(values->size() * sizeof(float)));
  for (const char* name : {"/ours.keras", "/ours.weights.h5", "/ours.h5"}) model.save_weights(folder + name);
  std::printf("%.9g\n", model.learning_rate());
  return 0;
}

template <class Network>
int with_optimizer(const std::string& name, const std::string& folder, const char* file) {
  if (name == "adam") return run<Network>(adam{.learning_rate = 0.01}, folder, file);
  if constexpr (std::is_same_v<Network, keras_networks::trained> || std::is_same_v<Network, keras_networks::mlp>) {
    if (name == "sgd") return run<Network>(sgd{.learning_rate = 0.02, .momentum = 0.9}, folder, file);
  }
  if constexpr (std::is_same_v<Network, keras_networks::gap>) {  // small, and quickly compiled
    if (name == "sgd_plain") return run<Network>(sgd{.learning_rate = 0.02}, folder, file);
    if (name == "amsgrad") return run<Network>(adamw{.learning_rate = 0.01, .amsgrad = true}, folder, file);
    if (name == "rmsprop") return run<Network>(rmsprop{.learning_rate = 0.01, .momentum = 0.5, .centered = true}, folder, file);
    if (name == "adagrad") return run<Network>(adagrad{.learning_rate = 0.01}, folder, file);
    if (name == "ftrl") return run<Network>(ftrl{.learning_rate = 0.05}, folder, file);
  }
  throw strata_error("no such optimizer for this network: " + name);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc < 4) throw strata_error("use: keras_files NETWORK OPTIMIZER FOLDER [FILE]");
    const std::string network = argv[1];
    const char* file = argc > 4 ? argv[4] : nullptr;
    namespace n = keras_networks;
    if (network == "mlp") return with_optimizer<n::mlp>(argv[2], argv[3], file);
    if (network == "cnn") return with_optimizer<n::cnn>(argv[2], argv[3], file);
    if (network == "image") return with_optimizer<n::image>(argv[2], argv[3], file);
    if (network == "graph") return with_optimizer<n::graph>(argv[2], argv[3], file);
    if (network == "gap") return with_optimizer<n::gap>(argv[2], argv[3], file);
    if (network == "separated") return with_optimizer<n::separated>(argv[2], argv[3], file);
    if (network == "words") return with_optimizer<n::words>(argv[2], argv[3], file);
    if (network == "trained") return with_optimizer<n::trained>(argv[2], argv[3], file);
    if (network == "several_ends") return run_several_ends(argv[3], file);
    if (network == "tuned") return with_optimizer<n::tuned>(argv[2], argv[3], file);
    throw strata_error("no such network: " + network);
  } catch (const strata_error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
