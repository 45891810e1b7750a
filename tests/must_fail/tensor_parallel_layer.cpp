// error: layer_cannot_be_divided<.*by_layer<.*layer_norm.*because<.*only_dense_conv2d_without_groups_and_embedding_can_be_divided>
// whole program
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using map = layout_map<rule<"dense", by_columns>>;
#else
using map = layout_map<rule<"dense", by_columns>, rule<"layer_norm*", by_columns>>;
#endif
void train() {
  trainer model{sequential<input<28, 28, 1>, flatten, dense<64, relu>, layer_norm<>, dense<10, softmax>>{}, adam{},
                sparse_categorical_crossentropy{}, tensor_parallel<4, map>{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
