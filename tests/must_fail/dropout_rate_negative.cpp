// error: shape_mismatch<.*at_index<1>.*by_layer<.*dropout<.*receives<8>.*because<.*dropout_rate_must_be_below_1>
#include <strata/layers/dropout.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8>, dropout<0>>;
#else
using net = sequential<input<8>, dropout<-0.1_r>>;
#endif
net n;
