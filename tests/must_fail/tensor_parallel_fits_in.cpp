// error: wrong_argument<.*fits_in<1024.*because<.*fits_in_does_not_go_with_divided_layers_set_a_smaller_micro_batch>
// whole program
#include <strata/distribute/tensor_parallel.hpp>
#include <strata/program/fits_in.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;
using map = layout_map<rule<"dense", by_columns>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, tensor_parallel<2, map>{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, tensor_parallel<2, map, fits_in<1_KiB>>{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
