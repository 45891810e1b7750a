// Trains in several processes, which examples/launch starts on one machine, and srun, mpirun, torchrun or Kubernetes on several.
// needs: openssl protozero
// takes: 20 s as two processes on two cores
#include <cstdlib>
#include <iostream>
#include <strata/distribute/multi_worker_mirrored.hpp>
#include <strata/resolvers/any_cluster.hpp>
#include <strata/strata.hpp>

#include "support/mnist.hpp"

using namespace strata;

using cnn = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<2>, conv2d<64, 3, relu>, max_pool2d<2>, flatten,
                       dense<64, relu>, dense<10, softmax>>;

int main(int argc, char** argv) {
  return examples::run(argc, argv, "Trains a CNN on MNIST with multi_worker_mirrored; the launcher defines the cluster.",
                       [](const examples::settings& s) {
                         auto mnist = examples::load(s);
                         trainer model{
                             cnn{},      adam{},       sparse_categorical_crossentropy{},
                             accuracy{}, seed(s.seed), multi_worker_mirrored{any_cluster(), {.compute = {.threads = s.threads}}}};
                         examples::with_batch<32, 64, 128>(s.batch, [&](auto batch) {
                           model.fit(mnist.train | data::shuffle(60'000, {.seed = s.seed}) | batch, epochs(s.epochs));
                           const logs result = model.evaluate(mnist.test | batch);
                           if (model.is_chief()) std::cout << "test accuracy " << result["accuracy"] << '\n';
                         });
                       });
}
