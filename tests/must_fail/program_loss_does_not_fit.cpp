// error: shape_mismatch<.*at_index<1>.*by_layer<.*sparse_categorical_crossentropy.*receives<6, 6, 4>
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8, 8, 1>, conv2d<4, 3>, flatten, dense<4, softmax>>;
#else
using net = sequential<input<8, 8, 1>, conv2d<4, 3>>;
#endif
detail::compiled<program<net, sparse_categorical_crossentropy<>, adam, type_list<>>, cpu> check;
