// error: wrong_option<.*at_index<1>.*by_layer<.*dense<4,.*softmax.*because<.*a_layer_takes_one_activation>
#include <strata/layers/activation.hpp>
#include <strata/layers/dense.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8>, dense<4, relu>, activation<softmax>>;
#else
using net = sequential<input<8>, dense<4, relu, softmax>>;
#endif
net n;
