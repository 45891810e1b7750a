// error: wrong_argument<.*fits_in<8388608.*because<.*one_device_takes_compute_options_or_a_device_such_as_gpu_0_and_its_options>
// whole program
#include <strata/distribute/one_device.hpp>

#include <strata/program/fits_in.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device<fits_in<8_MiB>>{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device{fits_in<8_MiB>{}}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
