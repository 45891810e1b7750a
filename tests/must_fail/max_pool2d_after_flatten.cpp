// error: shape_mismatch<.*at_index<2>.*by_layer<.*max_pool2d<2>.*receives<64>.*because<.*pooling_takes_height_width_channels>
#include <strata/layers/flatten.hpp>
#include <strata/layers/max_pool2d.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8, 8, 1>, max_pool2d<2>, flatten>;
#else
using net = sequential<input<8, 8, 1>, flatten, max_pool2d<2>>;
#endif
net n;
