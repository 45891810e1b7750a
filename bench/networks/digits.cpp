// Convolutional networks on MNIST's shape.
#include "measure.hpp"

void strata::bench::measure_digits(const runner& run) {
  run.network<cnn, 64>("cnn");
  run.network<cnn, 512>("cnn");
  run.network<cnn, 1>("cnn");
  run.network<lenet5, 64>("lenet5");
}
