// error: shape_mismatch<.*at_index<1>.*by_layer<.*activation<.*flatten.*receives<8, 8, 1>.*because<.*activation_takes_an_activation>
#include <strata/layers/activation.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8, 8, 1>, activation<relu>, flatten>;
#else
using net = sequential<input<8, 8, 1>, activation<flatten>>;
#endif
net n;
