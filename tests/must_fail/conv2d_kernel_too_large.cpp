// error: shape_mismatch<.*at_index<1>.*by_layer<.*conv2d<4, 5>.*receives<4, 8, 1>.*because<.*conv2d_kernel_is_larger_than_the_image_use_same_padding>
#include <strata/layers/conv2d.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<4, 8, 1>, conv2d<4, 5, same_padding>>;
#else
using net = sequential<input<4, 8, 1>, conv2d<4, 5>>;
#endif
net n;
