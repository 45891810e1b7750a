// error: optimizer_cannot_be_divided<.*adafactor.*because<.*it_keeps_means_of_whole_rows_and_columns_which_no_rank_has>
// whole program
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using by = lamb;
#else
using by = adafactor;
#endif
void train() {
  trainer model{sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>{}, by{},
                sparse_categorical_crossentropy{}, tensor_parallel<2, layout_map<rule<"dense", by_columns>>>{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
