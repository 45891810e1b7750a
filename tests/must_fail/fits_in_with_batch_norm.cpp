// error: activations_cannot_be_computed_again<.*because<.*batch_norm_needs_the_activations_of_all_samples_at_once_use_layer_norm_or_no_budget
// whole program
#include <strata/program/fits_in.hpp>
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using norm = layer_norm<>;
#else
using norm = batch_norm<>;
#endif
using net = sequential<input<28, 28, 1>, flatten, dense<8>, norm, activation<relu>, dense<10, softmax>>;

void check() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device<fits_in<64_MiB>>{}};
  model.fit(data::synthetic_digits(100) | data::batch<32>, epochs(1));
}
