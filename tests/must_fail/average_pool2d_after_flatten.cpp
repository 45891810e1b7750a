// error: shape_mismatch<.*at_index<2>.*by_layer<.*average_pool2d<2>.*receives<64>.*because<.*pooling_takes_height_width_channels>
#include <strata/layers/average_pool2d.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8, 8, 1>, average_pool2d<2>, flatten>;
#else
using net = sequential<input<8, 8, 1>, flatten, average_pool2d<2>>;
#endif
net n;
