// error: wrong_argument<.*rule<.*int>.*because<.*a_layer_is_divided_by_columns_by_rows_or_by_classes>
// whole program
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, tensor_parallel<2, layout_map<rule<"dense", by_columns>>>{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, tensor_parallel<2, layout_map<rule<"dense", int>>>{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
