// error: layer_cannot_be_divided<.*by_layer<.*dense<10.*among_ranks<4>.*because<.*by_columns_the_number_of_ranks_divides_the_units_filters_or_width>
// whole program
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using map = layout_map<rule<"dense", by_columns>>;
#else
using map = layout_map<rule<"dense*", by_columns>>;
#endif
void train() {
  trainer model{sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>{}, adam{},
                sparse_categorical_crossentropy{}, tensor_parallel<4, map>{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
