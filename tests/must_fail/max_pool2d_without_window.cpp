// error: shape_mismatch<.*at_index<1>.*by_layer<.*max_pool2d<0>.*receives<8, 8, 1>.*because<.*pooling_needs_positive_settings>
#include <strata/layers/max_pool2d.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8, 8, 1>, max_pool2d<1>>;
#else
using net = sequential<input<8, 8, 1>, max_pool2d<0>>;
#endif
net n;
