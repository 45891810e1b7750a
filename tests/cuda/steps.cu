// Training loops of users on the CPU: train_step of many kernels, losses and optimizers. test_compiled.py compiles it for a device;
// nothing runs there. It is a regression test: nvcc stopped here with an internal error.
#include <strata/strata.hpp>
using namespace strata;
using namespace strata::core;

using images = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<>, conv2d<64, 3, same_padding, no_bias>, batch_norm<>,
                          activation<relu>, max_pool2d<>, dropout<0.5_r>, conv2d<32, 3, elu<>>, average_pool2d<>, flatten, layer_norm<>,
                          dense<64, gelu>, dense<10, softmax>>;
using rows = sequential<input<784>, dense<64, tanh_activation>, dense<32, silu>, dense<1, sigmoid>>;

template <class Network, class Loss, class Optimizer>
void step(const samples<float>& batch) {
  trainer model{Network{}, Optimizer{}, Loss{}};
  model.train_step(batch);
}

int main() {
  samples<float> batch;
  if (!batch.inputs[0]) return 1;
  step<images, sparse_categorical_crossentropy<>, adam>(batch);
  step<images, categorical_crossentropy<>, adamax>(batch);
  step<rows, binary_crossentropy<>, lion>(batch);
  step<rows, mean_squared_error, lamb>(batch);
  step<rows, huber<>, ftrl>(batch);
}
