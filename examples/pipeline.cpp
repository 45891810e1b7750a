// A pipeline: the compiler divides a network into stages that take about equally long, and each stage is computed by threads of
// its own, for one micro-batch after the other. Prints the cut, the timetable, and in the end the same loss as on one device.
// takes: 20 s on two cores
#include <iostream>
#include <strata/callbacks/profiler.hpp>
#include <strata/distribute/pipeline.hpp>
#include <strata/strata.hpp>

#include "support/mnist.hpp"

using namespace strata;

using cnn = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, conv2d<32, 3, relu>, max_pool2d<2>, conv2d<64, 3, relu>,
                       conv2d<64, 3, relu>, max_pool2d<2>, flatten, dense<64, relu>, dense<10, softmax>>;

int main(int argc, char** argv) {
  return examples::run(argc, argv, "Trains a CNN as a pipeline of two stages.", [](const examples::settings& s) {
    auto mnist = examples::load(s);
    const pipeline<balanced<2>, micro_batches<8>, one_forward_one_backward> strategy{{.threads = s.threads}};
    trainer model{cnn{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, strategy, seed(s.seed)};
    std::cout << summary(model);
    print_plan(model);
    examples::with_batch<32, 64, 128>(s.batch, [&](auto batch) {
      model.fit(mnist.train | data::shuffle(10'000, {.seed = s.seed}) | batch, epochs(s.epochs), validation(mnist.test | batch),
                profiler{.trace = "pipeline.json"});
    });
    std::cout << "pipeline.json shows which thread computed which micro-batch when: open it in https://ui.perfetto.dev\n";
  });
}
