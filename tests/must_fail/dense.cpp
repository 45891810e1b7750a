// dense.
#include <strata/layers/activation.hpp>
#include <strata/layers/dense.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;

// case: dense_after_conv2d
// error: shape_mismatch<.*at_index<2>.*by_layer<.*dense<10.*receives<26, 26, 32>.*because<.*dense_takes_a_rank_1_shape_put_flatten_in_front>
// whole program
#include <strata/strata.hpp>

#ifdef TWIN
using net = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, flatten, dense<10, softmax>>;
#else
using net = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, dense<10, softmax>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: dense_on_a_sequence
// error: shape_mismatch<.*at_index<2>.*by_layer<.*dense<10.*receives<20, 16>.*put_global_average_pool1d_or_flatten_in_front>
// whole program
#include <strata/strata.hpp>

#ifdef TWIN
using net = sequential<input<20>, embedding<100, 16>, global_average_pool1d, dense<10, softmax>>;
#else
using net = sequential<input<20>, embedding<100, 16>, dense<10, softmax>>;
#endif
void train() {
  const data::array<float, shape{20}> x;
  const std::vector<int> y;
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::from_tensor_slices(x, y) | data::batch<32>, epochs(1));
}

// case: dense_penalty_too_large
// error: wrong_option<.*at_index<1>.*by_layer<.*dense<4,.*kernel_regularizer<.*because<.*a_penalty_must_be_at_least_0_and_at_most_1e38>
#ifdef TWIN
using net = sequential<input<8>, dense<4, kernel_regularizer<l2<1e38_r>>>>;
#else
using net = sequential<input<8>, dense<4, kernel_regularizer<l2<2e38_r>>>>;
#endif
net n;

// case: dense_two_activations
// error: wrong_option<.*at_index<1>.*by_layer<.*dense<4,.*softmax.*because<.*a_layer_takes_one_activation>
#ifdef TWIN
using net = sequential<input<8>, dense<4, relu>, activation<softmax>>;
#else
using net = sequential<input<8>, dense<4, relu, softmax>>;
#endif
net n;

// case: dense_unknown_option
// error: wrong_option<.*at_index<1>.*by_layer<.*dense<4,.*stride<2.*because<.*the_layer_does_not_know_this_option>
#ifdef TWIN
using net = sequential<input<8>, dense<4, relu, no_bias>>;
#else
using net = sequential<input<8>, dense<4, relu, stride<2>>>;
#endif
net n;

// case: dense_without_units
// error: shape_mismatch<.*at_index<1>.*by_layer<.*dense<0>.*receives<8>.*because<.*dense_needs_at_least_one_unit>
#ifdef TWIN
using net = sequential<input<8>, dense<1>>;
#else
using net = sequential<input<8>, dense<0>>;
#endif
net n;
