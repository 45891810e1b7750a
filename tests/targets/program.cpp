// A few training steps of networks with all kinds of kernels; prints a hash of each one's parameters and the last loss.
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <strata/cpu/cpu.hpp>
#include <strata/distribute/one_device.hpp>
#include <strata/layers/activation.hpp>
#include <strata/layers/average_pool2d.hpp>
#include <strata/layers/batch_norm.hpp>
#include <strata/layers/dense.hpp>
#include <strata/layers/dropout.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/layers/global_pool2d.hpp>
#include <strata/losses/sparse_categorical_crossentropy.hpp>
#include <strata/optimizers/adam.hpp>
#include <vector>

using namespace strata;

namespace {

using cnn = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<2>, conv2d<64, 3, relu>, max_pool2d<2>, flatten,
                       dense<64, relu>, dropout<0.2_r>, dense<10, softmax>>;
using mlp = sequential<input<784>, dense<128, activations::tanh>, dense<64, sigmoid>, dense<10, softmax>>;
using residual_net =
    sequential<input<16, 16, 3>, conv2d<16, 3, same_padding, no_bias>, batch_norm<>, activation<relu>,
               residual<conv2d<16, 3, same_padding>, batch_norm<>, activation<relu>, conv2d<16, 3, same_padding>, batch_norm<>>, activation<relu>,
               conv2d<16, 3, dilation<3>, relu>, conv2d<16, 3, same_padding, relu>,  // 10x10
               conv2d<32, 3, stride<2>, same_padding, groups<4>>, activation<relu>, average_pool2d<2>,
               conv2d<16, 3, same_padding, relu>,  // 2x2
               conv2d<17, 1, relu>, global_average_pool2d, dense<10, softmax>>;
// Its convolutions have Winograd's tiles of every size.
static_assert(simd::winograd_tile(16, 16, 16, 16) == 4 && simd::winograd_gradient_tile(16, 16) == 4);
static_assert(simd::winograd_tile(16, 16, 10, 10) == 5 && simd::winograd_gradient_tile(10, 10) == 5);
static_assert(simd::winograd_tile(32, 16, 2, 2) == 2 && simd::winograd_tile(16, 32, 2, 2) == 2);

template <class Network>
void train(const char* name) {
  using P = program<Network, sparse_categorical_crossentropy<>, adam, list<>>;
  constexpr int count = 12, size = Network::input_shape.size();
  synchronous_executor<P, cpu> executor(adam{}, 1, {.threads = 1});
  executor.prepare(count, purpose::training);
  std::vector<float> x(std::size_t(count) * size);
  std::vector<std::int32_t> labels(count);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(philox{3}.uniform(i));
  for (int n = 0; n < count; ++n) labels[std::size_t(n)] = n % 10;
  double loss = 0;
  for (int step = 0; step < 3; ++step) loss = executor.train_step({x.data(), labels.data(), nullptr, count})[0].mean();

  std::uint64_t hash = 14695981039346656037u;
  for (float w : executor.parameters()) {
    std::uint32_t bits;
    std::memcpy(&bits, &w, sizeof bits);
    hash = (hash ^ bits) * 1099511628211u;
  }
  std::printf("%s %016" PRIx64 " %.6f\n", name, hash, loss);
}

}  // namespace

int main() {
  train<cnn>("cnn");
  train<mlp>("mlp");
  train<residual_net>("residual");
}
