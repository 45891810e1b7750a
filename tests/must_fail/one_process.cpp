// Strategies of one process.

using namespace strata;

// case: mirrored_with_zero
// error: wrong_argument<.*zero<1>.*because<.*mirrored_takes_a_list_of_devices_such_as_gpus_or_cpus_4_and_options_of_their_backend>
// whole program
#include <strata/distribute/mirrored.hpp>

#include <strata/exchange/zero/zero.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, mirrored{cpus(), {}}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, mirrored{cpus(), zero<1>{}}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: one_device_of_a_backend
// error: wrong_argument<.*fits_in<8388608.*because<.*one_device_takes_compute_options_or_a_device_such_as_gpu_0_and_its_options>
// whole program
#include <strata/distribute/one_device.hpp>

#include <strata/program/fits_in.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device<fits_in<8_MiB>>{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device{fits_in<8_MiB>{}}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: one_device_zero_after_options
// error: wrong_argument<.*zero<1>.*because<.*one_device_takes_compute_options_or_a_device_such_as_gpu_0_and_its_options>
// whole program
#include <strata/distribute/one_device.hpp>

#include <strata/exchange/zero/zero.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device{{.threads = 1}}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device{{}, zero<1>{}}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
