// error: activations_do_not_fit<.*because<.*batch_norm_needs_the_activations_of_all_samples_at_once
#include <strata/program/fits_in.hpp>
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using norm = layer_norm<>;
#else
using norm = batch_norm<>;
#endif
using net = sequential<input<28, 28, 1>, flatten, dense<8>, norm, activation<relu>, dense<10, softmax>>;
using training = program<net, sparse_categorical_crossentropy<>, adam, type_list<>>;
static_assert(sizeof(synchronous_executor<training, fits_in<64_MiB>>) > 0);
