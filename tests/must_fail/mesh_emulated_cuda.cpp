// mesh.
// needs: emulated_cuda

// case: mesh_of_gpu_pipelines
// error: wrong_argument<.*cuda.*because<.*the_ranks_of_a_mesh_compute_on_the_cpu>
// whole program
#include <strata/cuda/places.hpp>
#include <strata/distribute/device_mesh.hpp>
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using halves = pipeline<balanced<2>, micro_batches<8>>;
#else
using halves = gpu_pipeline<balanced<2>, micro_batches<8>>;
#endif

void check() {
  trainer model{sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>{}, adam{},
                sparse_categorical_crossentropy{}, device_mesh<data_parallel<2>, halves>{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
