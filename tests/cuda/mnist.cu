// mnist FOLDER: three epochs of MNIST on a GPU; fails below 98.5 % of the test images.
#include <cstdio>
#include <strata/cuda/cuda.hpp>
#include <strata/data.hpp>
#include <strata/strata.hpp>
using namespace strata;

int main(int count, char** arguments) {
  using cnn = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<>, conv2d<64, 3, relu>, max_pool2d<>, flatten, dense<64, relu>,
                         dense<10, softmax>>;
  if (count != 2) return std::fprintf(stderr, "usage: mnist FOLDER\n"), 2;
  try {
    const auto [train, test] = data::mnist(arguments[1]);
    trainer model{cnn{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, one_device{gpu(0)}, seed(1)};
    model.fit(train | data::shuffle(60'000) | data::batch<64> | data::prefetch(2), epochs(3), verbosity::off);
    const double reached = model.evaluate(test | data::batch<500>)["accuracy"];
    std::printf("accuracy %.4f\n", reached);
    return reached >= 0.985 ? 0 : 1;
  } catch (const strata_error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
