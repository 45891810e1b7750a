// error: shape_mismatch<.*at_index<1>.*by_layer<.*global_average_pool1d.*receives<8, 8, 3>.*because<.*global_pooling_takes_steps_channels>
#include <strata/layers/global_pool1d.hpp>
#include <strata/layers/reshape.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8, 8, 3>, reshape<64, 3>, global_average_pool1d>;
#else
using net = sequential<input<8, 8, 3>, global_average_pool1d>;
#endif
net n;
