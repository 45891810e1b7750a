// Strategies of one process.
// needs: emulated_cuda

using namespace strata;

// case: mirrored_gpus_with_gpu
// error: wrong_argument<.*gpu.*because<.*mirrored_takes_a_list_of_devices_such_as_gpus_or_cpus_4_and_options_of_their_backend>
// whole program
#include <strata/distribute/mirrored.hpp>

#include <strata/cuda/cuda.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, mirrored{gpus(2)}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, mirrored{gpus(2), gpu(1)}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: mirrored_of_gpu
// error: wrong_argument<.*gpu.*because<.*mirrored_takes_a_list_of_devices_such_as_gpus_or_cpus_4_and_options_of_their_backend>
// whole program
#include <strata/distribute/mirrored.hpp>

#include <strata/cuda/cuda.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, mirrored{gpus({0})}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, mirrored{gpu(0)}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: one_device_gpu_with_compute_options
// error: wrong_argument<.*compute_options.*because<.*one_device_takes_compute_options_or_a_device_such_as_gpu_0_and_its_options>
// whole program
#include <strata/distribute/one_device.hpp>

#include <strata/cuda/cuda.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device{gpu(0), {.leaves = 4}}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device{gpu(0), compute_options{.leaves = 4}}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: one_device_gpu_with_fastest
// error: wrong_argument<.*fastest.*because<.*one_device_takes_compute_options_or_a_device_such_as_gpu_0_and_its_options>
// whole program
#include <strata/distribute/one_device.hpp>

#include <strata/cuda/cuda.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device{gpu(0)}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device{gpu(0), fastest{}}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: one_device_of_gpus
// error: wrong_argument<.*gpus.*because<.*one_device_takes_compute_options_or_a_device_such_as_gpu_0_and_its_options>
// whole program
#include <strata/distribute/one_device.hpp>

#include <strata/cuda/cuda.hpp>
#include <strata/strata.hpp>

using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device{gpu(0)}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device{gpus()}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
