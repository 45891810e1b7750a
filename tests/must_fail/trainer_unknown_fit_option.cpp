// error: wrong_argument<.*int.*because<.*fit_takes_options_and_callbacks
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(5));
#else
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, 5);
#endif
}
