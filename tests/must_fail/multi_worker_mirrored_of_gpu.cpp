// error: wrong_argument<.*tf_config, .*gpu>.*because<.*devices_are_a_list_such_as_gpus_which_comes_after_the_resolver>
// whole program
// needs: grpc protozero emulated_cuda
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
