// Asynchronous training: workers compute gradients, parameter servers (ps) keep the parameters.
// needs: openssl protozero
// takes: 20 s as three workers and two servers on two cores
// examples/launch -n 2 --chief --ps 2 -- examples/run parameter_server, or with TF_CONFIG set by hand on each machine.
#include <cstdlib>
#include <iostream>
#include <strata/data/views/shard.hpp>
#include <strata/distribute/parameter_server.hpp>
#include <strata/resolvers/tf_config.hpp>
#include <strata/strata.hpp>

#include "support/mnist.hpp"

using namespace strata;

using cnn = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<2>, conv2d<64, 3, relu>, max_pool2d<2>, flatten,
                       dense<64, relu>, dense<10, softmax>>;

int main(int argc, char** argv) {
  return examples::run(argc, argv, "Trains a CNN on MNIST with parameter servers; TF_CONFIG defines the cluster.",
                       [](const examples::settings& s) {
                         const cluster members = tf_config()();
                         trainer model{
                             cnn{},      adam{},       sparse_categorical_crossentropy{},
                             accuracy{}, seed(s.seed), parameter_server{tf_config(), {.compute = {.threads = s.threads}}}};
                         if (model.serve()) return;  // returns true in a ps, after the training
                         const data::train_and_test digits = examples::load(s);
                         examples::with_batch<32, 64, 128>(s.batch, [&](auto batch) {
                           const auto mine = digits.train | data::shard(std::size_t(members.size()), std::size_t(members.rank()));
                           model.fit(mine | data::shuffle(60'000, {.seed = s.seed}) | batch, epochs(s.epochs));
                           if (!model.is_chief()) return;
                           const logs result = model.evaluate(digits.test | batch);
                           std::cout << "test accuracy " << result["accuracy"] << '\n';
                         });
                       });
}
