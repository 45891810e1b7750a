// error: wrong_argument<.*gpus.*because<.*central_storage_takes_cpus_and_gpus_are_for_mirrored>
// whole program
// needs: emulated_cuda
#include <strata/distribute/mirrored.hpp>

#include <strata/cuda/cuda.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, central_storage{cpus(2)}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, central_storage{gpus()}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
