// A program that trains on the CPU and is compiled by nvcc. test_host_device.py compares its output with that of another compiler.
#include <cstdint>
#include <cstdio>
#include <strata/data.hpp>
#include <strata/strata.hpp>
#include <vector>
using namespace strata;
using namespace strata::core;

int main() {
  using cnn = sequential<input<8, 8, 1>, conv2d<16, 3, relu>, max_pool2d<>, conv2d<16, 3>, batch_norm<>, activation<gelu>, flatten,
                         dropout<0.1_r>, dense<4, softmax>>;
  std::vector<float> images(256 * 64);
  std::vector<std::int32_t> labels(256);
  for (int n = 0; n < 256; ++n) {
    labels[std::size_t(n)] = n % 4;
    for (int i = 0; i < 64; ++i) images[std::size_t(n * 64 + i)] = float((i / 8 + n) % (2 + n % 4)) + float(philox{1}.uniform(unsigned(n * 64 + i)));
  }
  trainer model{cnn{}, adam{.learning_rate = 0.005}, sparse_categorical_crossentropy{}, accuracy{}, seed(3)};
  const training_history past = model.fit(data::from_tensor_slices(data::array<float, shape{8, 8, 1}>(images), labels) | data::shuffle(64) | data::batch<32> | data::prefetch(2),
                                 epochs(8), verbosity::off);
  for (const double loss : past["loss"]) std::printf("%.17g\n", loss);
  for (const float w : model.parameters().subspan(0, 16)) std::printf("%.9g\n", double(w));
}
