// error: wrong_argument<.*steps_per_execution.*because<.*options_and_callbacks_go_to_fit_after_the_data>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<10, softmax>>;

void check() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device{}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, steps_per_execution(8)};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
