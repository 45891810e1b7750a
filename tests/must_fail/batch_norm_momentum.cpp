// error: shape_mismatch<.*at_index<1>.*by_layer<.*batch_norm<.*receives<8>.*because<.*batch_norm_momentum_must_be_below_1>
#include <strata/layers/batch_norm.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8>, batch_norm<momentum<0.9_r>>>;
#else
using net = sequential<input<8>, batch_norm<momentum<1>>>;
#endif
net n;
