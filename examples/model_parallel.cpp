// Model parallelism: two branches of one network on two devices, which compute at the same time. Prints where each layer lies and
// what is sent, and writes a trace.
// takes: 2 s on two cores
#include <iostream>
#include <strata/callbacks/profiler.hpp>
#include <strata/distribute/placed.hpp>
#include <strata/strata.hpp>

#include "support/mnist.hpp"

using namespace strata;

using two_devices = sequential<input<28, 28, 1>, flatten, dense<64, relu>,
                               add<on_device<0, dense<64, relu>>, on_device<1, dense<64, relu>>>, dense<10, softmax>>;

int main(int argc, char** argv) {
  return examples::run(argc, argv, "Trains a network whose branches are on two devices.", [](const examples::settings& s) {
    auto mnist = examples::load(s);
    trainer model{two_devices{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, placed{thread_groups<2>{s.threads}},
                  seed(s.seed)};
    std::cout << summary(model);
    print_plan(model);
    examples::with_batch<32, 64, 128>(s.batch, [&](auto batch) {
      model.fit(mnist.train | data::shuffle(10'000, {.seed = s.seed}) | batch, epochs(s.epochs), validation(mnist.test | batch),
                profiler{.trace = "model_parallel.json"});
    });
    std::cout << "model_parallel.json shows when each device computed: open it in https://ui.perfetto.dev\n";
  });
}
