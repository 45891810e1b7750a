// A custom function that divides a data set among models. The models are trained side by side and predict as an ensemble.
// takes: 1 s on two cores
#include <algorithm>
#include <functional>
#include <iostream>
#include <strata/data/views/shard.hpp>
#include <strata/strata.hpp>
#include <vector>

#include "support/mnist.hpp"

using namespace strata;

using wide = sequential<input<28, 28, 1>, flatten, dense<128, relu>, dense<10, softmax>>;

namespace {

/// Splits the data set into `num_replicas` parts. Each sample is in one part.
template <data::sample_view Dataset>
auto data_shard(const Dataset& dataset, std::size_t num_replicas) {
  std::vector<decltype(dataset | data::shard(num_replicas, 0))> shards;
  for (std::size_t index = 0; index < num_replicas; ++index) shards.push_back(dataset | data::shard(num_replicas, index));
  return shards;
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run(argc, argv, "Trains three networks on a third of MNIST each, and lets them vote.",
                       [](const examples::settings& s) {
                         auto [train, test] = examples::load(s);
                         const auto unseen = test | data::batch<100>;
                         std::vector<float> votes;
                         std::uint64_t replica = 0;
                         for (const auto& shard : data_shard(train, 3)) {
                           trainer model{wide{},
                                         adam{},
                                         sparse_categorical_crossentropy{},
                                         accuracy{},
                                         one_device{{.threads = s.threads}},
                                         seed(s.seed + replica++)};
                           model.fit(shard | data::shuffle(20'000, {.seed = s.seed}) | data::batch<64>, epochs(s.epochs));
                           const auto predicted = model.predict(unseen);
                           votes.resize(predicted.values.size());
                           std::ranges::transform(votes, predicted.values, votes.begin(), std::plus{});
                         }
                         std::size_t right = 0;
                         for (std::size_t i = 0; i < test.size(); ++i) {
                           const auto first = votes.begin() + std::ptrdiff_t(10 * i);
                           right += std::max_element(first, first + 10) - first == test.rows().label({std::uint32_t(i)});
                         }
                         std::cout << "together: " << double(right) / double(test.size()) << '\n';
                       });
}
