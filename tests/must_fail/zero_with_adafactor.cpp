// error: optimizer_does_not_fit_zero<.*adafactor.*because<.*zero_cuts_matrices_of_which_it_needs_whole_rows_and_columns
// whole program
#include <strata/communicators/in_process.hpp>
#include <strata/distribute/synchronous_among.hpp>
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using optimizer_of_mine = adam;
#else
using optimizer_of_mine = adafactor;
#endif

void check(const in_process& processes) {
  trainer model{sequential<input<28, 28, 1>, flatten, dense<10, softmax>>{}, optimizer_of_mine{},
                sparse_categorical_crossentropy{}, synchronous_among{processes, {}, {}, zero<1>{}}};
  model.fit(data::synthetic_digits(100) | data::batch<32>, epochs(1));
}
