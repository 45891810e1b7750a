// error: shape_mismatch<.*at_index<1>.*by_layer<.*up_sampling2d<.*because<.*up_sampling2d_size_must_be_at_least_1>
#include <strata/layers/up_sampling2d.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8, 8, 1>, up_sampling2d<2, sampling_size<1, 2>>>;
#else
using net = sequential<input<8, 8, 1>, up_sampling2d<2, sampling_size<0, 2>>>;
#endif
net n;
