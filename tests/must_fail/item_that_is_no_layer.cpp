// error: shape_mismatch<.*at_index<1>.*by_layer<int>.*receives<8>.*because<.*items_of_a_network_are_layers>
#include <strata/layers/dense.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8>, dense<1>>;
#else
using net = sequential<input<8>, int>;
#endif
net n;
