// error: shape_mismatch<.*at_index<1>.*by_layer<.*reshape<0, 64>.*receives<8, 8, 1>.*because<.*reshape_extents_must_be_positive>
#include <strata/layers/reshape.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8, 8, 1>, reshape<-1, 32>>;
#else
using net = sequential<input<8, 8, 1>, reshape<0, 64>>;
#endif
net n;
