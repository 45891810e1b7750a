// error: wrong_argument<.*tensor_ranks<1, 2.*pipelines<.*because<.*a_mesh_has_data_parallel_and_then_pipeline_or_tensor_parallel_or_both_in_this_order>
// whole program
#include <strata/distribute/mesh.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;
#ifdef TWIN
using by_mesh = mesh<data_parallel<2>, pipeline<balanced<2>>, tensor_parallel<2, layout_map<rule<"dense", by_columns>>>>;
#else
using by_mesh = mesh<data_parallel<2>, tensor_parallel<2, layout_map<rule<"dense", by_columns>>>, pipeline<balanced<2>>>;
#endif

void check() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, by_mesh{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
