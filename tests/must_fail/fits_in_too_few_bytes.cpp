// error: activations_do_not_fit<.*in_bytes<1000>, .*at_least_bytes<[0-9]+>, .*because<.*so_much_is_needed_for_one_sample_even_if_all_that_can_be
// whole program
#include <strata/program/fits_in.hpp>
#include <strata/strata.hpp>

using namespace strata;
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
