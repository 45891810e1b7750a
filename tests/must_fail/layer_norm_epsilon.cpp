// error: shape_mismatch<.*at_index<1>.*by_layer<.*layer_norm<.*receives<8>.*because<.*normalization_epsilon_must_be_positive_and_finite_as_float>
#include <strata/layers/layer_norm.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8>, layer_norm<epsilon<1e-5_r>>>;
#else
using net = sequential<input<8>, layer_norm<epsilon<1e-46_r>>>;
#endif
net n;
