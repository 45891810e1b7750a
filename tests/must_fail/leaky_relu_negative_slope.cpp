// error: shape_mismatch<.*at_index<1>.*by_layer<.*activation<.*leaky_relu.*receives<8>.*because<.*leaky_relu_slope_must_not_be_negative>
#include <strata/layers/activation.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8>, activation<leaky_relu<0.1_r>>>;
#else
using net = sequential<input<8>, activation<leaky_relu<-0.1_r>>>;
#endif
net n;
