// error: wrong_option<.*at_index<1>.*by_layer<.*dense<4,.*stride<2.*because<.*the_layer_does_not_know_this_option>
#include <strata/layers/dense.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8>, dense<4, relu, no_bias>>;
#else
using net = sequential<input<8>, dense<4, relu, stride<2>>>;
#endif
net n;
