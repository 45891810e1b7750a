// error: wrong_argument<.*unfused<.*because<.*the_pipeline_and_the_tensor_parallel_of_a_mesh_have_the_same_backend>
// whole program
#include <strata/distribute/mesh.hpp>
#include <strata/kernel/unfused.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;
#ifdef TWIN
using halves = pipeline<balanced<2>, micro_batches<8>, gpipe>;
using by_mesh = mesh<data_parallel<1>, halves, tensor_parallel<2, layout_map<rule<"dense", by_columns>>>>;
#else
using halves = pipeline<balanced<2>, micro_batches<8>, gpipe, unfused<cpu>>;
using by_mesh = mesh<data_parallel<1>, halves, tensor_parallel<2, layout_map<rule<"dense", by_columns>>>>;
#endif

void check() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, by_mesh{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
