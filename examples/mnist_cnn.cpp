// The reference convolutional network on MNIST: 98.5 % and more after three epochs.
// takes: 20 s on two cores
#include <iostream>
#include <strata/strata.hpp>

#include "support/mnist.hpp"

using namespace strata;

using cnn = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<2>, conv2d<64, 3, relu>, max_pool2d<2>, flatten,
                       dense<64, relu>, dense<10, softmax>>;

int main(int argc, char** argv) {
  return examples::run(argc, argv, "Trains a convolutional network on MNIST.", [](const examples::settings& s) {
    auto mnist = examples::load(s);
    trainer model{cnn{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, one_device{{.threads = s.threads}}, seed(s.seed)};
    std::cout << summary(model);
    examples::with_batch<32, 64, 128>(s.batch, [&](auto batch) {
      model.fit(mnist.train | data::shuffle(60'000, {.seed = s.seed}) | batch, epochs(s.epochs), validation(mnist.test | batch));
    });
  });
}
