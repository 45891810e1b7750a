// error: shape_mismatch<.*at_index<2>.*by_layer<.*up_sampling2d<2>.*receives<64>.*because<.*up_sampling2d_takes_height_width_channels>
#include <strata/layers/flatten.hpp>
#include <strata/layers/up_sampling2d.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8, 8, 1>, up_sampling2d<2>, flatten>;
#else
using net = sequential<input<8, 8, 1>, flatten, up_sampling2d<2>>;
#endif
net n;
