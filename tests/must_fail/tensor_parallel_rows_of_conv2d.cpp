// error: layer_cannot_be_divided<.*by_layer<.*conv2d<16.*because<.*only_dense_and_embedding_can_be_divided_by_rows>
// whole program
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using map = layout_map<rule<"conv2d", by_columns>>;
#else
using map = layout_map<rule<"conv2d", by_rows>>;
#endif
void train() {
  trainer model{sequential<input<28, 28, 1>, conv2d<16, 3, stride<2>, relu>, flatten, dense<10, softmax>>{}, adam{},
                sparse_categorical_crossentropy{}, tensor_parallel<2, map>{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
