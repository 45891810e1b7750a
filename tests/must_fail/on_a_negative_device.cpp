// error: shape_mismatch<.*at_index<2>.*by_layer<.*on<.*device<-1>.*because<.*on_takes_a_device_numbered_from_0_such_as_device_0_and_layers>
#include <strata/layers/dense.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<28, 28, 1>, flatten, on<device<1>, dense<64, relu>>, dense<10>>;
#else
using net = sequential<input<28, 28, 1>, flatten, on<device<-1>, dense<64, relu>>, dense<10>>;
#endif
net n;
