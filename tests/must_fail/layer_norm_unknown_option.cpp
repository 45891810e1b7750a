// error: wrong_option<.*at_index<1>.*by_layer<.*layer_norm<.*momentum.*because<.*the_layer_does_not_know_this_option>
#include <strata/layers/batch_norm.hpp>
#include <strata/layers/layer_norm.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8>, layer_norm<no_center>>;
#else
using net = sequential<input<8>, layer_norm<momentum<0.9_r>>>;
#endif
net n;
