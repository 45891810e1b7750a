// error: wrong_argument<.*zero<1>.*because<.*one_device_takes_compute_options_or_a_device_such_as_gpu_0_and_its_options>
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
