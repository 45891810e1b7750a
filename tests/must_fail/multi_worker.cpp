// Strategies of several processes.

// case: synchronous_among_zero_without_options
// error: wrong_argument<.*in_process, .*zero<1>.*because<.*synchronous_among_takes_a_communicator_compute_options_communication_options_and_zero_in_this_order>
// whole program
#include <strata/distribute/synchronous_among.hpp>

#include <strata/communicators/in_process.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check(const in_process& processes) {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, synchronous_among{processes, {}, {}, zero<1>{}}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, synchronous_among{processes, zero<1>{}}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
