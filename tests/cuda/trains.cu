// A CNN and an MLP that train on a GPU; test_compiled.py compiles it.
#include <cstdint>
#include <cstdio>
#include <strata/cuda/cuda.hpp>
#include <strata/strata.hpp>
#include <vector>
using namespace strata;

namespace {
using cnn = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<>, conv2d<64, 3, same_padding, no_bias>, batch_norm<>, activation<relu>,
                       max_pool2d<>, flatten, dropout<0.5_r>, dense<10, softmax>>;
using mlp = sequential<input<784>, dense<64, gelu>, layer_norm<>, dense<64, relu, kernel_regularizer<l2<1e-4_r>>>, dense<10, softmax>>;

/// Whether the loss of images with a bright row, whose index is the label, falls.
template <class Network, class Optimizer>
bool learns(const Optimizer& optimizer) {
  std::vector<float> x(512 * 784);
  std::vector<std::int32_t> y(512);
  for (std::size_t n = 0; n < 512; ++n) {
    y[n] = std::int32_t(n % 10);
    for (std::size_t i = 0; i < 784; ++i) x[n * 784 + i] = float(philox{1}.uniform(n * 784 + i)) + float(i / 78 == n % 10);
  }
  trainer model{Network{}, optimizer, sparse_categorical_crossentropy{}, accuracy{}, one_device{gpu(0)}, seed(1)};
  const history past = model.fit(x, y, epochs(4), batch_size(64), verbosity::off);
  std::printf("loss %g, then %g\n", past["loss"].front(), past["loss"].back());
  return past["loss"].back() < past["loss"].front() / 2;
}
}  // namespace

int main() {
  try {
    return learns<cnn>(adam{}) && learns<mlp>(lamb{.learning_rate = 0.01, .global_clipnorm = 1}) ? 0 : 1;
  } catch (const error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
