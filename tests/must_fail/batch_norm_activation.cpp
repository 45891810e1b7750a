// error: wrong_option<.*at_index<1>.*by_layer<.*batch_norm<.*relu.*because<.*the_layer_takes_no_activation>
#include <strata/layers/activation.hpp>
#include <strata/layers/batch_norm.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8>, batch_norm<>, activation<relu>>;
#else
using net = sequential<input<8>, batch_norm<relu>>;
#endif
net n;
