// Layers that are large enough for libraries, trained on a GPU; test_compiled.py compiles it.
#include <cstdint>
#include <cstdio>
#include <strata/cuda/cuda.hpp>
#include <strata/strata.hpp>
#include <vector>
using namespace strata;
using namespace strata::core;

int main() {
  using network = sequential<input<256>, reshape<2, 2, 64>, conv2d<64, 3, same_padding, relu>, flatten, dense<512, relu>, dense<256>, dense<4, softmax>>;
  try {
    std::vector<float> x(4096 * 256);
    std::vector<std::int32_t> y(4096);
    for (std::size_t n = 0; n < 4096; ++n) {
      y[n] = std::int32_t(n % 4);
      for (std::size_t i = 0; i < 256; ++i) x[n * 256 + i] = float(philox{1}.uniform(n * 256 + i)) + float(i / 64 == n % 4);
    }
    trainer model{network{}, adam{}, sparse_categorical_crossentropy{}, one_device{gpu(0)}, precision::mixed_bf16{}, seed(1)};
    const training_history past = model.fit(x, y, epochs(3), batch_size(1024), verbosity::off);
    std::printf("loss %g, then %g\n", past["loss"].front(), past["loss"].back());
    return past["loss"].back() < past["loss"].front() / 2 ? 0 : 1;
  } catch (const strata_error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
