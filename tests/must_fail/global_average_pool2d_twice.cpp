// error: shape_mismatch<.*at_index<2>.*by_layer<.*global_average_pool2d.*receives<3>.*because<.*pooling_takes_height_width_channels>
#include <strata/layers/global_pool2d.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8, 8, 3>, global_average_pool2d>;
#else
using net = sequential<input<8, 8, 3>, global_average_pool2d, global_average_pool2d>;
#endif
net n;
