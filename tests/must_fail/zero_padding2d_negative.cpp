// error: shape_mismatch<.*at_index<1>.*by_layer<.*zero_padding2d<-1.*receives<8, 8, 1>.*because<.*zero_padding2d_must_not_be_negative>
#include <strata/layers/zero_padding2d.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8, 8, 1>, zero_padding2d<1>>;
#else
using net = sequential<input<8, 8, 1>, zero_padding2d<-1>>;
#endif
net n;
