// error: shape_mismatch<.*at_index<1>.*by_layer<.*add<.*receives<8, 8, 4>.*because<.*add_takes_branches_of_equal_shape>
#include <strata/layers/conv2d.hpp>
#include <strata/layers/residual.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8, 8, 4>, residual<conv2d<4, 3, same_padding>>>;
#else
using net = sequential<input<8, 8, 4>, residual<conv2d<4, 3>>>;
#endif
net n;
