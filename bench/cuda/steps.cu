// Microseconds per training step on a GPU, a line "network batch microseconds" each: the networks of torch_steps.py. Products are
// those of TensorFloat-32, which PyTorch's are there, or of bfloat16 where the name says so.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <strata/cuda/cuda.hpp>
#include <strata/strata.hpp>
#include <string>
#include <vector>
using namespace strata;

namespace {
using cnn = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<>, conv2d<64, 3, relu>, max_pool2d<>, flatten, dense<64, relu>,
                       dense<10, softmax>>;
using mlp = sequential<input<784>, dense<128, relu>, dense<10, softmax>>;
using wide = sequential<input<4096>, dense<4096, relu>, dense<4096, relu>, dense<4096, relu>, dense<4096, softmax>>;

template <class Network, class Precision = precision::tf32>
void measure(const char* name, int batch) {
  using clock = std::chrono::steady_clock;
  std::vector<float> x(std::size_t(batch) * std::size_t(Network::input_shape.size()), 0.5f);
  std::vector<std::int32_t> y(std::size_t(batch), 1);
  trainer model{Network{}, adam{}, sparse_categorical_crossentropy{}, one_device{gpu(0)}, Precision{}};
  const samples<float> all{x.data(), y.data(), batch};
  for (int i = 0; i < 5; ++i) model.train_step(all);
  const auto begin = clock::now();
  long steps = 0;
  double seconds = 0;
  for (; seconds < 2; ++steps, seconds = std::chrono::duration<double>(clock::now() - begin).count()) model.train_step(all);
  std::printf("%s b=%d %.1f\n", name, batch, seconds / double(steps) * 1e6);
}
}  // namespace

int main() {
  try {
    measure<cnn>("reference CNN", 64);
    measure<cnn>("reference CNN", 4096);
    measure<cnn, precision::mixed_bf16>("reference CNN bf16", 4096);
    measure<mlp>("mlp 784-128-10", 64);
    measure<wide>("mlp 4096 x 4", 8192);
    measure<wide, precision::mixed_bf16>("mlp 4096 x 4 bf16", 8192);
  } catch (const error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
