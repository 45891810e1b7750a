// error: wrong_argument<.*zero<1>.*because<.*zero_divides_state_among_processes_on_CPUs_and_each_GPU_keeps_a_copy>
// whole program
// needs: emulated_cuda
#include <strata/distribute/mirrored.hpp>

#include <strata/cuda/cuda.hpp>
#include <strata/exchange/zero/zero.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, mirrored{gpus()}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, mirrored{gpus(), zero<1>{}}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
