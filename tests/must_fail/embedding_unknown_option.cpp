// error: wrong_option<.*at_index<1>.*by_layer<.*embedding<10, 4,.*kernel_regularizer<.*because<.*the_layer_does_not_know_this_option>
#include <strata/layers/embedding.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<7>, embedding<10, 4, embeddings_regularizer<l2<>>>>;
#else
using net = sequential<input<7>, embedding<10, 4, kernel_regularizer<l2<>>>>;
#endif
net n;
