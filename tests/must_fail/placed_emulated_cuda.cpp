// placed.
// needs: emulated_cuda

// case: placed_on_one_gpu
// error: missing_device<.*on_device<1>.*because<.*the_strategy_has_no_such_device_give_placed_more_thread_groups_or_gpus>
// whole program
#include <strata/cuda/places.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, on_device<1, dense<10, softmax>>>;
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, placed{gpu(0), gpu(1)}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, placed{gpu(0)}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
