// batch_norm and layer_norm.
#include <strata/layers/activation.hpp>
#include <strata/layers/batch_norm.hpp>
#include <strata/layers/layer_norm.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;

// case: batch_norm_activation
// error: wrong_option<.*at_index<1>.*by_layer<.*batch_norm<.*relu.*because<.*the_layer_takes_no_activation>
#ifdef TWIN
using net = sequential<input<8>, batch_norm<>, activation<relu>>;
#else
using net = sequential<input<8>, batch_norm<relu>>;
#endif
net n;

// case: batch_norm_epsilon
// error: shape_mismatch<.*at_index<1>.*by_layer<.*batch_norm<.*receives<8>.*because<.*normalization_epsilon_must_be_positive_and_finite_as_float>
#ifdef TWIN
using net = sequential<input<8>, batch_norm<epsilon<1e-5_r>>>;
#else
using net = sequential<input<8>, batch_norm<epsilon<1e-46_r>>>;
#endif
net n;

// case: batch_norm_momentum
// error: shape_mismatch<.*at_index<1>.*by_layer<.*batch_norm<.*receives<8>.*because<.*batch_norm_momentum_must_be_below_1>
#ifdef TWIN
using net = sequential<input<8>, batch_norm<momentum<0.9_r>>>;
#else
using net = sequential<input<8>, batch_norm<momentum<1>>>;
#endif
net n;

// case: layer_norm_epsilon
// error: shape_mismatch<.*at_index<1>.*by_layer<.*layer_norm<.*receives<8>.*because<.*normalization_epsilon_must_be_positive_and_finite_as_float>
#ifdef TWIN
using net = sequential<input<8>, layer_norm<epsilon<1e-5_r>>>;
#else
using net = sequential<input<8>, layer_norm<epsilon<1e-46_r>>>;
#endif
net n;

// case: layer_norm_unknown_option
// error: wrong_option<.*at_index<1>.*by_layer<.*layer_norm<.*momentum.*because<.*the_layer_does_not_know_this_option>
#ifdef TWIN
using net = sequential<input<8>, layer_norm<no_center>>;
#else
using net = sequential<input<8>, layer_norm<momentum<0.9_r>>>;
#endif
net n;
