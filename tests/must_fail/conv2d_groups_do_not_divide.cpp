// error: shape_mismatch<.*at_index<1>.*by_layer<.*conv2d<8, 3.*groups<4>.*receives<8, 8, 6>.*because<.*conv2d_groups_must_divide_channels_and_filters>
#include <strata/layers/conv2d.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8, 8, 4>, conv2d<8, 3, groups<4>>>;
#else
using net = sequential<input<8, 8, 6>, conv2d<8, 3, groups<4>>>;
#endif
net n;
