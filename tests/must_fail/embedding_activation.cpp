// error: wrong_option<.*at_index<1>.*by_layer<.*embedding<10, 4,.*relu.*because<.*the_layer_takes_no_activation>
#include <strata/layers/activation.hpp>
#include <strata/layers/activations.hpp>
#include <strata/layers/embedding.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<7>, embedding<10, 4>, activation<relu>>;
#else
using net = sequential<input<7>, embedding<10, 4, relu>>;
#endif
net n;
