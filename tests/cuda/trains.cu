// CNNs and an MLP that train on a GPU, and the MLP with its layers on two places; test_compiled.py compiles it.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <strata/cuda/places.hpp>
#include <strata/strata.hpp>
#include <strata/train/weights_file.hpp>
#include <type_traits>
#include <vector>
using namespace strata;
using namespace strata::core;

namespace {
using cnn = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<>, conv2d<64, 3, same_padding, no_bias>, batch_norm<>,
                       activation<relu>, max_pool2d<>, flatten, dropout<0.5_r>, dense<10, softmax>>;
using mlp =
    sequential<input<784>, dense<64, gelu>, layer_norm<>, dense<64, relu, kernel_regularizer<l2<1e-4_r>>>, dense<10, softmax>>;
/// Computed on tensor cores, and in mixed_bf16 with images in shared memory.
using mixed = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<>, conv2d<64, 3, relu>, max_pool2d<>, flatten,
                         dense<64, relu>, dense<10, softmax>>;
/// `mlp` with its layers on two places.
using placed_mlp = sequential<input<784>, dense<64, gelu>,
                              on_device<1, layer_norm<>, dense<64, relu, kernel_regularizer<l2<1e-4_r>>>>, dense<10, softmax>>;

/// Both places on one GPU, because a machine may have only one; the constructor of placed refuses a GPU that is listed twice.
struct two_places_on_one_gpu : placed<gpu_places<2>, cuda> {
  two_places_on_one_gpu() : placed(gpu(0), gpu(1)) { options.devices = {0, 0}; }
};

/// The losses of images with a bright row, whose index is the label.
template <class Network, class Precision = precision::f32, class Optimizer>
std::vector<double> losses(const Optimizer& optimizer, const auto& strategy) {
  std::vector<float> x(512 * 784);
  std::vector<std::int32_t> y(512);
  for (std::size_t n = 0; n < 512; ++n) {
    y[n] = std::int32_t(n % 10);
    for (std::size_t i = 0; i < 784; ++i) x[n * 784 + i] = float(philox{1}.uniform(n * 784 + i)) + float(i / 78 == n % 10);
  }
  trainer model{Network{}, optimizer, sparse_categorical_crossentropy{}, accuracy{}, strategy, Precision{}, seed(1)};
  const training_history past = model.fit(x, y, epochs(4), batch_size(64), verbosity::off);
  std::printf("loss %g, then %g\n", past["loss"].front(), past["loss"].back());
  if constexpr (std::is_same_v<Network, mixed>) {  // only here: nvcc once generated host code from it that did not compile
    const auto file = std::filesystem::temp_directory_path() / "strata_trains.safetensors";
    model.save_weights(file.string());
    model.load_weights(file.string());
    std::filesystem::remove(file);
  }
  return past["loss"];
}
bool fall(const std::vector<double>& losses) { return losses.back() < losses.front() / 2; }
}  // namespace

int main() {
  try {
    const lamb rules{.learning_rate = 0.01, .global_clipnorm = 1};
    const std::vector<double> of_mlp = losses<mlp>(rules, one_device{gpu(0)});
    const one_device large{gpu(0), {.leaves = 1}};
    return fall(losses<cnn>(adam{}, one_device{gpu(0)})) && fall(of_mlp) && fall(losses<mixed, precision::tf32>(adam{}, large)) &&
                   fall(losses<mixed, precision::mixed_bf16>(adam{}, large)) &&
                   losses<placed_mlp>(rules, two_places_on_one_gpu{}) == of_mlp
               ? 0
               : 1;
  } catch (const strata_error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
