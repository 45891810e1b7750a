// error: wrong_option<.*by_layer<.*sparse_categorical_crossentropy<.*label_smoothing<.*because<.*the_layer_does_not_know_this_option>
#include <strata/layers/dense.hpp>
#include <strata/losses/categorical_crossentropy.hpp>
#include <strata/losses/sparse_categorical_crossentropy.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<8>, dense<4>, categorical_crossentropy<label_smoothing<0.1_r>>>;
#else
using net = sequential<input<8>, dense<4>, sparse_categorical_crossentropy<label_smoothing<0.1_r>>>;
#endif
net n;
