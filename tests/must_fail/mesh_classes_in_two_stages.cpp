// error: wrong_argument<.*stages<3, 1>.*because<.*a_layer_divided_by_classes_and_the_softmax_after_it_are_one_stage>
// whole program
#include <strata/distribute/mesh.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10>, activation<softmax>>;
#ifdef TWIN
using by_mesh = mesh<data_parallel<1>, pipeline<stages<2, 2>>, tensor_parallel<2, layout_map<rule<"dense_1", by_classes>>>>;
#else
using by_mesh = mesh<data_parallel<1>, pipeline<stages<3, 1>>, tensor_parallel<2, layout_map<rule<"dense_1", by_classes>>>>;
#endif

void check() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, by_mesh{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
