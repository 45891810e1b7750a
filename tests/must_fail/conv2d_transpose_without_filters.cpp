// error: shape_mismatch<.*at_index<1>.*by_layer<.*conv2d_transpose<0, 3>.*because<.*conv2d_transpose_needs_positive_settings>
#include <strata/layers/conv2d_transpose.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8, 8, 3>, conv2d_transpose<1, 3>>;
#else
using net = sequential<input<8, 8, 3>, conv2d_transpose<0, 3>>;
#endif
net n;
