// error: wrong_option<.*at_index<1>.*by_layer<.*max_pool2d<2.*relu.*because<.*the_layer_takes_no_activation>
#include <strata/layers/activations.hpp>
#include <strata/layers/max_pool2d.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8, 8, 1>, max_pool2d<2, stride<1>>>;
#else
using net = sequential<input<8, 8, 1>, max_pool2d<2, relu>>;
#endif
net n;
