// error: layer_cannot_be_divided<.*by_layer<.*dense<10.*among_ranks<3>.*because<.*by_rows_the_number_of_ranks_divides_the_number_of_inputs>
// whole program
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using map = layout_map<rule_for<dense<66, relu>, by_columns>, rule<"dense_1", by_rows>>;
using hidden = dense<66, relu>;
#else
using map = layout_map<rule<"dense_1", by_rows>>;
using hidden = dense<64, relu>;
#endif
void train() {
  trainer model{sequential<input<28, 28, 1>, flatten, hidden, dense<10, softmax>>{}, adam{}, sparse_categorical_crossentropy{},
                tensor_parallel<3, map>{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
