// Tensor parallelism: two threads divide the layers of one network. Each has half of the parameters of the large layers, with
// their gradients and what the optimizer keeps, and half of the classes. Prints the part of a rank, and in the end the same loss
// as on one device, but for rounding.
// takes: 20 s on two cores
#include <iostream>
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/strata.hpp>

#include "support/mnist.hpp"

using namespace strata;
using namespace strata::core;

using mlp = sequential<input<28, 28, 1>, flatten, dense<512, relu>, dense<512, relu>, dense<10, softmax>>;
using halves = layout_map<rule_for<dense<512, relu>, by_columns>, rule<"dense_2", by_classes>>;

int main(int argc, char** argv) {
  return examples::run(
      argc, argv, "Trains an MLP whose layers are divided between two threads.", [](const examples::settings& s) {
        auto mnist = examples::load(s);
        trainer model{mlp{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, tensor_parallel<2, halves>{}, seed(s.seed)};
        std::cout << summary(model);
        print_plan(model);
        examples::with_batch<32, 64, 128>(s.batch, [&](auto batch) {
          model.fit(mnist.train | data::shuffle(10'000, {.seed = s.seed}) | batch, epochs(s.epochs),
                    validation(mnist.test | batch));
        });
      });
}
