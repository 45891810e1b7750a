// fits_in.
// needs: emulated_cuda

// case: fits_in_on_a_gpu
// error: activations_cannot_be_computed_again<.*in_bytes<8388608>.*because<.*a_GPU_computes_all_samples_of_a_batch_at_once_take_smaller_batches>
// whole program
#include <strata/program/fits_in.hpp>

#include <strata/cuda/cuda.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device<fits_in<8_MiB>>{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device<fits_in<8_MiB, core::cuda>>{gpu(0)}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
