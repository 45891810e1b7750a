// error: layer_cannot_be_divided<.*by_layer<.*dense<64.*because<.*by_classes_divides_the_dense_layer_that_ends_a_network_alone_or_with_softmax>
// whole program
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using map = layout_map<rule<"dense_1", by_classes>>;
#else
using map = layout_map<rule<"dense", by_classes>>;
#endif
void train() {
  trainer model{sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>{}, adam{},
                sparse_categorical_crossentropy{}, accuracy{}, tensor_parallel<2, map>{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
