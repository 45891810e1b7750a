// error: wrong_argument<.*gpus.*because<.*one_device_takes_compute_options_or_a_device_such_as_gpu_0_and_its_options>
// whole program
// needs: emulated_cuda
#include <strata/distribute/one_device.hpp>

#include <strata/cuda/cuda.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device{gpu(0)}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device{gpus()}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
