// fits_in.

using namespace strata;

// case: fits_in_too_few_bytes
// error: activations_do_not_fit<.*in_bytes<1000>, .*at_least_bytes<[0-9]+>, .*because<.*so_much_is_needed_for_one_sample_even_if_all_that_can_be
// whole program
#include <strata/program/fits_in.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<16, relu>, dense<16, relu>, dense<16, relu>, dense<10, softmax>>;
#ifdef TWIN
constexpr long budget = 1_MiB;
#else
constexpr long budget = 1000;
#endif

void check() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device<fits_in<budget>>{}};
  model.fit(data::synthetic_digits(100) | data::batch<32>, epochs(1));
}

// case: fits_in_with_batch_norm
// error: activations_cannot_be_computed_again<.*because<.*batch_norm_needs_the_activations_of_all_samples_at_once_use_layer_norm_or_no_budget
// whole program
#include <strata/program/fits_in.hpp>
#include <strata/strata.hpp>

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
