// A custom training loop. The strategy still divides each batch and reduces the gradients.
// takes: 1 s on two cores
#include <iostream>
#include <strata/distribute/mirrored.hpp>
#include <strata/strata.hpp>

#include "support/mnist.hpp"

using namespace strata;
using namespace strata::core;

using wide = sequential<input<28, 28, 1>, flatten, dense<128, relu>, dense<10, softmax>>;

int main(int argc, char** argv) {
  return examples::run(argc, argv, "Trains 784-128-10 on MNIST in a hand-written loop.", [](const examples::settings& s) {
    auto [train, test] = examples::load(s);
    const mirrored strategy = s.threads > 0 ? mirrored{cpus(s.threads)} : mirrored{};
    trainer model{wide{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(s.seed)};
    auto batches = train | data::shuffle(60'000, {.seed = s.seed}) | data::batch<64>;
    const auto unseen = test | data::batch<100>;

    for (int epoch = 0; epoch < s.epochs; ++epoch) {
      metric_sum loss, right;
      for (const auto& batch : batches) {
        const auto [batch_loss, batch_right] = model.train_step(batch);  // each has a sum over the samples and their count
        loss += batch_loss;
        right += batch_right;
      }
      std::cout << "epoch " << epoch + 1 << ": loss " << loss.mean() << ", accuracy " << right.mean() << ", unseen "
                << model.evaluate(unseen)["accuracy"] << '\n';
      if (epoch == 1) model.set_learning_rate(1e-4);
    }
  });
}
