// error: shape_mismatch<.*at_index<1>.*by_layer<.*max_pool2d<4>.*receives<3, 8, 1>.*because<.*pooling_window_is_larger_than_the_image>
#include <strata/layers/max_pool2d.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<3, 8, 1>, max_pool2d<4, same_padding>>;
#else
using net = sequential<input<3, 8, 1>, max_pool2d<4>>;
#endif
net n;
