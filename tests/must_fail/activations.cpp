// Activations and dropout.
#include <strata/layers/activation.hpp>
#include <strata/layers/dropout.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;

// case: activation_of_a_layer
// error: shape_mismatch<.*at_index<1>.*by_layer<.*activation<.*flatten.*receives<8, 8, 1>.*because<.*activation_takes_an_activation>
#ifdef TWIN
using net = sequential<input<8, 8, 1>, activation<relu>, flatten>;
#else
using net = sequential<input<8, 8, 1>, activation<flatten>>;
#endif
net n;

// case: dropout_rate_negative
// error: shape_mismatch<.*at_index<1>.*by_layer<.*dropout<.*receives<8>.*because<.*dropout_rate_must_be_below_1>
#ifdef TWIN
using net = sequential<input<8>, dropout<0>>;
#else
using net = sequential<input<8>, dropout<-0.1_r>>;
#endif
net n;

// case: dropout_noise_shape
// error: shape_mismatch<.*at_index<1>.*by_layer<.*dropout<.*receives<8>.*because<.*the_noise_shape_of_dropout_has_each_extent_of_the_input_or_1>
#ifdef TWIN
using net = sequential<input<8>, dropout<0.5_r, shape{1}>>;
#else
using net = sequential<input<8>, dropout<0.5_r, shape{4}>>;
#endif
net n;

// case: dropout_rate_too_large
// error: shape_mismatch<.*at_index<1>.*by_layer<.*dropout<.*receives<8>.*because<.*dropout_rate_must_be_below_1>
#ifdef TWIN
using net = sequential<input<8>, dropout<0.5_r>>;
#else
using net = sequential<input<8>, dropout<1>>;
#endif
net n;

// case: elu_negative_alpha
// error: shape_mismatch<.*at_index<1>.*by_layer<.*activation<.*elu.*receives<8>.*because<.*elu_alpha_must_not_be_negative>
#ifdef TWIN
using net = sequential<input<8>, activation<elu<1>>>;
#else
using net = sequential<input<8>, activation<elu<-1>>>;
#endif
net n;

// case: leaky_relu_negative_slope
// error: shape_mismatch<.*at_index<1>.*by_layer<.*activation<.*leaky_relu.*receives<8>.*because<.*leaky_relu_slope_must_not_be_negative>
#ifdef TWIN
using net = sequential<input<8>, activation<leaky_relu<0.1_r>>>;
#else
using net = sequential<input<8>, activation<leaky_relu<-0.1_r>>>;
#endif
net n;

// case: softmax_of_one_unit
// error: prediction_mismatch<.*the_network_ends_with<.*dense<1, .*the_loss_is<.*mean_squared_error.*because<.*softmax_of_one_unit_is_always_1_use_sigmoid_or_allow_it_by_activation_linear>
// whole program
#include <strata/strata.hpp>

#ifdef TWIN
using net = sequential<input<8>, dense<1, sigmoid>>;
#else
using net = sequential<input<8>, dense<1, softmax>>;
#endif
void train() {
  const data::array<float, shape{8}> x;
  const data::array<float, shape{1}> y;
  trainer model{net{}, adam{}, mean_squared_error{}};
  model.fit(data::from_tensor_slices(x, y) | data::batch<32>, epochs(1));
}
