// error: shape_mismatch<.*at_index<1>.*by_layer<.*dense<0>.*receives<8>.*because<.*dense_needs_at_least_one_unit>
#include <strata/layers/dense.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8>, dense<1>>;
#else
using net = sequential<input<8>, dense<0>>;
#endif
net n;
