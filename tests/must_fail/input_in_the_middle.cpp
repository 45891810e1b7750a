// error: shape_mismatch<.*at_index<1>.*by_layer<.*input<8>.*receives<8>.*because<.*input_stands_first_and_once>
#include <strata/layers/dense.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8>, dense<1>>;
#else
using net = sequential<input<8>, input<8>, dense<1>>;
#endif
net n;
