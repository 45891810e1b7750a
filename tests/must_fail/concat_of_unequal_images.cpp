// error: shape_mismatch<.*at_index<1>.*by_layer<.*concat<.*receives<8, 8, 2>.*because<.*concat_takes_branches_that_differ_only_in_channels>
#include <strata/layers/concat.hpp>
#include <strata/layers/conv2d.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8, 8, 1>, concat<branch<conv2d<4, 1>>, branch<conv2d<2, 1>>>>;
#else
using net = sequential<input<8, 8, 1>, concat<branch<conv2d<4, 3>>, branch<conv2d<2, 1>>>>;
#endif
net n;
