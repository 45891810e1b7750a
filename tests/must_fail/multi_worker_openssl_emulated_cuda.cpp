// Strategies of several processes.
// needs: openssl protozero emulated_cuda

// case: multi_worker_mirrored_of_gpu
// error: wrong_argument<.*tf_config, .*gpu>.*because<.*multi_worker_mirrored_takes_a_resolver_then_options_and_zero_or_devices_and_options>
// whole program
#include <strata/distribute/multi_worker_mirrored.hpp>

#include <strata/cuda/cuda.hpp>
#include <strata/resolvers/tf_config.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, multi_worker_mirrored{tf_config(), gpus({0})}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, multi_worker_mirrored{tf_config(), gpu(0)}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
