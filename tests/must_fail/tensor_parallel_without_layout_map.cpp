// error: wrong_argument<.*rule<.*by_columns>.*because<.*after_the_number_of_ranks_comes_a_layout_map_of_rules_such_as_rule_of_a_name_and_by_columns>
// whole program
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, tensor_parallel<2, layout_map<rule<"dense", by_columns>>>{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, tensor_parallel<2, rule<"dense", by_columns>>{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
