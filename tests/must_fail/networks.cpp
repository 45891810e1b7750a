// Networks.
#include <strata/layers/dense.hpp>
#include <strata/layers/input.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;

// case: copy_weights_of_another_shape
// error: copy_weights: the layers receive another shape in the second network, so their weights differ in shape
#include <strata/strata.hpp>
#include <strata/train/copy_weights.hpp>

using features = sequential<dense<8, relu>>;
using first = sequential<input<4>, features, dense<3, softmax>>;
#ifdef TWIN
using second = sequential<input<4>, features, dense<2, softmax>>;
#else
using second = sequential<input<5>, features, dense<2, softmax>>;
#endif
void transfer() {
  trainer from{first{}, sgd{}, sparse_categorical_crossentropy{}};
  trainer to{second{}, sgd{}, sparse_categorical_crossentropy{}};
  copy_weights<features>(from, to);
}

// case: copy_weights_of_other_layers
// error: copy_weights<Layers>: Layers must be exactly one item of each network
#include <strata/strata.hpp>
#include <strata/train/copy_weights.hpp>

using features = sequential<dense<8, relu>>;
using first = sequential<input<4>, features, dense<3, softmax>>;
#ifdef TWIN
using second = sequential<input<4>, features, dense<2, softmax>>;
#else
using second = sequential<input<4>, dense<8, relu>, dense<2, softmax>>;
#endif
void transfer() {
  trainer from{first{}, sgd{}, sparse_categorical_crossentropy{}};
  trainer to{second{}, sgd{}, sparse_categorical_crossentropy{}};
  copy_weights<features>(from, to);
}

// case: frozen_shape
// error: shape_mismatch<.*at_index<2, 1>.*by_layer<.*dense<10>.*receives<26, 26, 8>
// whole program
#include <strata/strata.hpp>

#ifdef TWIN
using net = sequential<input<28, 28, 1>, conv2d<8, 3>, frozen<activation<relu>, flatten, dense<10>>, dense<10, softmax>>;
#else
using net = sequential<input<28, 28, 1>, conv2d<8, 3>, frozen<activation<relu>, dense<10>>, dense<10, softmax>>;
#endif
void train() {
  const std::vector<float> x(784);
  const std::vector<int> y(1);
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(x, y);
}

// case: input_extent_zero
// error: shape_mismatch<.*at_index<0>.*by_layer<.*input<8, 0>.*receives<>.*because<.*input_takes_one_to_four_positive_extents>
#ifdef TWIN
using net = sequential<input<8, 1>>;
#else
using net = sequential<input<8, 0>>;
#endif
net n;

// case: input_in_the_middle
// error: shape_mismatch<.*at_index<1>.*by_layer<.*input<8>.*receives<8>.*because<.*input_stands_first_and_once>
#ifdef TWIN
using net = sequential<input<8>, dense<1>>;
#else
using net = sequential<input<8>, input<8>, dense<1>>;
#endif
net n;

// case: network_in_a_network
// error: shape_mismatch<.*at_index<2>.*receives<14, 14, 1>.*wants<28, 28, 1>.*because<.*an_inner_network_receives_the_shape_of_its_input>
// whole program
#include <strata/strata.hpp>

#ifdef TWIN
using net = sequential<input<28, 28, 1>, max_pool2d<1>, sequential<input<28, 28, 1>, flatten, dense<10, softmax>>>;
#else
using net = sequential<input<28, 28, 1>, max_pool2d<2>, sequential<input<28, 28, 1>, flatten, dense<10, softmax>>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: network_without_input
// error: network_without_input<.*because<.*the_network_of_a_trainer_begins_with_input>
// whole program
#include <strata/strata.hpp>

#ifdef TWIN
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
#else
using net = sequential<flatten, dense<10, softmax>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
