// Arguments of a trainer.
// needs: emulated_cuda

// case: trainer_gpu_without_strategy
// error: wrong_argument<.*gpu.*because<.*a_device_belongs_to_a_strategy_write_one_device_of_gpu_0_or_mirrored_of_gpus>
// whole program
#include <strata/cuda/cuda.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device{gpu(0)}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, gpu(0)};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
