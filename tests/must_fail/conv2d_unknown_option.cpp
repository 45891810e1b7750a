// error: wrong_option<.*at_index<1>.*by_layer<.*conv2d<4, 3.*flatten_first.*because<.*the_layer_does_not_know_this_option>
#include <strata/layers/conv2d.hpp>
#include <strata/layers/dropout.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
struct flatten_first {};
#ifdef TWIN
using net = sequential<input<9, 9, 1>, conv2d<4, 3, valid_padding>>;
#else
using net = sequential<input<9, 9, 1>, conv2d<4, 3, flatten_first>>;
#endif
net n;
