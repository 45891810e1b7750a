// error: wrong_argument<.*gpu.*because<.*mirrored_takes_a_list_of_devices_such_as_gpus_or_cpus_4_and_options_of_their_backend>
// whole program
// needs: emulated_cuda
#include <strata/distribute/mirrored.hpp>

#include <strata/cuda/cuda.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, mirrored{gpus(2)}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, mirrored{gpus(2), gpu(1)}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
