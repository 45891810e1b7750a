// error: shape_mismatch<.*at_index<1>.*by_layer<.*average_pool2d<4>.*receives<3, 8, 1>.*because<.*pooling_window_is_larger_than_the_image_pool_less_often>
#include <strata/layers/average_pool2d.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<3, 8, 1>, average_pool2d<3>>;
#else
using net = sequential<input<3, 8, 1>, average_pool2d<4>>;
#endif
net n;
