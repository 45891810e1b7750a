// The same program on one core or several. Only the strategy changes; the result has the same bits.
// takes: 1 s on two cores
#include <iostream>
#include <strata/distribute/mirrored.hpp>
#include <strata/strata.hpp>

#include "support/mnist.hpp"

using namespace strata;

using deep = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<64, relu>, dense<10, softmax>>;

int main(int argc, char** argv) {
  return examples::run(argc, argv, "Trains 784-64-64-10 on MNIST with mirrored{cpus(THREADS)}.", [](const examples::settings& s) {
    auto mnist = examples::load(s);
    const mirrored strategy = s.threads > 0 ? mirrored{cpus(s.threads)} : mirrored{};
    trainer model{deep{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(s.seed)};
    std::cout << summary(model);
    examples::with_batch<32, 64, 128>(s.batch, [&](auto batch) {
      model.fit(mnist.train | data::shuffle(10'000, {.seed = s.seed}) | batch, epochs(s.epochs), validation(mnist.test | batch));
    });
  });
}
