// error: rule_decides_nothing<.*at_rule<1>.*by_columns>.*because<.*no_layer_has_such_a_name_or_type_or_an_earlier_rule_matches_it>
// whole program
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using map = layout_map<rule<"dense_1", by_columns>, rule<"dense*", by_columns>>;
#else
using map = layout_map<rule<"dense_*", by_columns>, rule<"dense_1", by_columns>>;
#endif

void train() {
  trainer model{sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>{}, adam{},
                sparse_categorical_crossentropy{}, tensor_parallel<2, map>{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
