// The reference convolutional network on all TPU chips of this machine, as one module of XLA; without any, on the plugin
// for CPUs, which `pip install xla-cpu-pjrt` installs. See docs/tpu.md.
// takes: 60 s on two cores
#include <iostream>
#include <strata/strata.hpp>
#include <strata/xla/tpu.hpp>

#include "support/mnist.hpp"

using namespace strata;

using cnn = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<2>, conv2d<64, 3, relu>, max_pool2d<2>, flatten,
                       dense<64, relu>, dense<10, softmax>>;

void train(const auto& strategy, const examples::settings& s) {
  auto mnist = examples::load(s);
  trainer model{cnn{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(s.seed)};
  std::cout << model.executor().replicas() << " x " << model.executor().client().device_kind() << std::endl;
  examples::with_batch<32, 64, 128, 1024>(s.batch, [&](auto batch) {
    model.fit(mnist.train | data::shuffle(60'000, {.seed = s.seed}) | batch, epochs(s.epochs), validation(mnist.test | batch));
  });
}

int main(int argc, char** argv) {
  return examples::run(argc, argv, "Trains a convolutional network on MNIST, on TPUs.", [](const examples::settings& s) {
    if (tpu_chips() > 0) {
      train(tpu{}, s);
    } else {
      std::cout << "There is no TPU here: training on XLA's plugin for CPUs, on two replicas.\n";
      train(xla{.plugin = "cpu", .replicas = 2}, s);
    }
  });
}
