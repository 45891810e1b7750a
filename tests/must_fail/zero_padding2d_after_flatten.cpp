// error: shape_mismatch<.*at_index<2>.*by_layer<.*zero_padding2d<1.*receives<64>.*because<.*zero_padding2d_takes_height_width_channels>
#include <strata/layers/flatten.hpp>
#include <strata/layers/zero_padding2d.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8, 8, 1>, zero_padding2d<1>, flatten>;
#else
using net = sequential<input<8, 8, 1>, flatten, zero_padding2d<1>>;
#endif
net n;
