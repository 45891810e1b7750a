// error: shape_mismatch<.*at_index<1>.*by_layer<.*conv2d_transpose<.*because<.*conv2d_transpose_takes_stride_or_dilation_not_both>
#include <strata/layers/conv2d_transpose.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8, 8, 3>, conv2d_transpose<4, 3, dilation<2>>>;
#else
using net = sequential<input<8, 8, 3>, conv2d_transpose<4, 3, stride<2>, dilation<2>>>;
#endif
net n;
