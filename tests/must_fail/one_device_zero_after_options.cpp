// error: wrong_argument<.*zero<1>.*because<.*zero_divides_state_among_processes_give_it_to_multi_worker_mirrored>
// whole program
#include <strata/distribute/one_device.hpp>

#include <strata/exchange/zero/zero.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device{{.threads = 1}}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device{{}, zero<1>{}}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
