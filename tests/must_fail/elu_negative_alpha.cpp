// error: shape_mismatch<.*at_index<1>.*by_layer<.*activation<.*elu.*receives<8>.*because<.*elu_alpha_must_not_be_negative>
#include <strata/layers/activation.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8>, activation<elu<1>>>;
#else
using net = sequential<input<8>, activation<elu<-1>>>;
#endif
net n;
