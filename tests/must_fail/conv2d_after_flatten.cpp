// error: shape_mismatch<.*at_index<2>.*by_layer<.*conv2d<4, 3>.*receives<64>.*because<.*conv2d_takes_height_width_channels>
#include <strata/layers/conv2d.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8, 8, 1>, conv2d<4, 3>, flatten>;
#else
using net = sequential<input<8, 8, 1>, flatten, conv2d<4, 3>>;
#endif
net n;
