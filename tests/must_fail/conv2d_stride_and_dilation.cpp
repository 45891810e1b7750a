// error: shape_mismatch<.*at_index<1>.*by_layer<.*conv2d<4, 3.*.*receives<9, 9, 1>.*because<.*conv2d_takes_stride_or_dilation_not_both>
#include <strata/layers/conv2d.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<9, 9, 1>, conv2d<4, 3, dilation<2>>>;
#else
using net = sequential<input<9, 9, 1>, conv2d<4, 3, stride<2>, dilation<2>>>;
#endif
net n;
