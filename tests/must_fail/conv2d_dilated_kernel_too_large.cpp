// error: shape_mismatch<.*at_index<1>.*by_layer<.*conv2d<4, 3.*dilation<3.*receives<6, 6, 1>.*because<.*conv2d_kernel_is_larger_than_the_image_use_same_padding>
#include <strata/layers/conv2d.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<6, 6, 1>, conv2d<4, 3, dilation<2>>>;
#else
using net = sequential<input<6, 6, 1>, conv2d<4, 3, dilation<3>>>;
#endif
net n;
