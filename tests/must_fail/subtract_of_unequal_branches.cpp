// error: shape_mismatch<.*at_index<1>.*by_layer<.*subtract<.*receives<8, 8, 4>.*because<.*subtract_takes_branches_of_equal_shape>
#include <strata/layers/conv2d.hpp>
#include <strata/layers/subtract.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8, 8, 1>, subtract<branch<conv2d<4, 3, same_padding>>, branch<conv2d<4, 1>>>>;
#else
using net = sequential<input<8, 8, 1>, subtract<branch<conv2d<4, 3>>, branch<conv2d<4, 1>>>>;
#endif
net n;
