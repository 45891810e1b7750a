// Two small dense networks on MNIST, with class indices as labels and with one-hot labels.
// takes: 2 s on two cores
#include <iostream>
#include <strata/strata.hpp>

#include "support/mnist.hpp"

using namespace strata;

using wide = sequential<input<28, 28, 1>, flatten, dense<128, relu>, dense<10, softmax>>;
using deep = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<64, relu>, dense<10, softmax>>;

namespace {

template <class Network, class Loss>
void train(const char* title, const examples::settings& s, auto train, auto test, Loss loss) {
  std::cout << '\n' << title << '\n';
  trainer model{Network{}, adam{}, loss, accuracy{}, one_device{{.threads = s.threads}}, seed(s.seed)};
  std::cout << summary(model);
  examples::with_batch<32, 64, 128>(s.batch, [&](auto batch) {
    model.fit(train | data::shuffle(60'000, {.seed = s.seed}) | batch, epochs(s.epochs), validation(test | batch));
  });
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run(argc, argv, "Trains two dense networks on MNIST.", [](const examples::settings& s) {
    auto [digits, unseen] = examples::load(s);
    train<wide>("784-128-10, one-hot labels, categorical_crossentropy", s, digits | data::one_hot<10>, unseen | data::one_hot<10>,
                categorical_crossentropy{});
    train<deep>("784-64-64-10, class numbers, sparse_categorical_crossentropy", s, digits, unseen,
                sparse_categorical_crossentropy{});
  });
}
