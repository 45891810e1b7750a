// Trainers share nothing: two that train at the same time, on copies of one data set, have the bits of one after the other.
#include <doctest/doctest.h>

#include <strata/strata.hpp>
#include <thread>
#include <vector>

using namespace strata;

TEST_CASE("two trainers in two threads") {
  using net = sequential<input<28, 28, 1>, flatten, dense<16, relu>, dense<10, softmax>>;
  const auto digits = data::synthetic_digits(96);
  std::vector<float> weights[4];
  const auto train = [&](int which, double rate) {
    trainer model{net{}, adam{.learning_rate = rate}, sparse_categorical_crossentropy{}, one_device{{.threads = 2}}};
    model.fit(digits | data::shuffle(96) | data::batch<32>, epochs(2), verbosity::off);
    weights[which].assign(model.parameters().begin(), model.parameters().end());
  };
  std::thread fast(train, 0, 1e-2), slow(train, 1, 1e-4);
  fast.join(), slow.join();
  train(2, 1e-2), train(3, 1e-4);
  CHECK(weights[0] == weights[2]);
  CHECK(weights[1] == weights[3]);
  CHECK(weights[0] != weights[1]);
}
