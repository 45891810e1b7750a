// error: shape_mismatch<.*at_index<1>.*by_layer<.*conv2d<0, 3>.*receives<8, 8, 1>.*because<.*conv2d_needs_positive_settings>
#include <strata/layers/conv2d.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8, 8, 1>, conv2d<1, 3>>;
#else
using net = sequential<input<8, 8, 1>, conv2d<0, 3>>;
#endif
net n;
