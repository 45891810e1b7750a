// error: shape_mismatch<.*at_index<1>.*by_layer<.*add<.*receives<8, 8, 4>.*because<.*add_takes_branches_of_equal_shape>
#include <strata/layers/add.hpp>
#include <strata/layers/conv2d.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8, 8, 1>, add<branch<conv2d<4, 3, same_padding>>, branch<conv2d<4, 1>>>>;
#else
using net = sequential<input<8, 8, 1>, add<branch<conv2d<4, 3>>, branch<conv2d<4, 1>>>>;
#endif
net n;
