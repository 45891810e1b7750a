// The two parts of MNIST.
#pragma once
#include <strata/data/sets/digits.hpp>

namespace strata::data {

struct train_and_test {
  digits train, test;
};

}  // namespace strata::data
