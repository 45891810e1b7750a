// error: shape_mismatch<.*at_index<1>.*by_layer<.*reshape<2, 2, 2, 2, 4>.*receives<8, 8, 1>.*because<.*reshape_takes_one_to_four_extents>
#include <strata/layers/reshape.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8, 8, 1>, reshape<2, 2, 4, 4>>;
#else
using net = sequential<input<8, 8, 1>, reshape<2, 2, 2, 2, 4>>;
#endif
net n;
