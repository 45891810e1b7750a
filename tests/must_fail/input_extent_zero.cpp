// error: shape_mismatch<.*at_index<0>.*by_layer<.*input<8, 0>.*receives<>.*because<.*input_takes_one_to_four_positive_extents>
#include <strata/layers/input.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8, 1>>;
#else
using net = sequential<input<8, 0>>;
#endif
net n;
