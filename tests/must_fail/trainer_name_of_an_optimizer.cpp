// error: wrong_argument<.*char.*because<.*a_trainer_takes_an_optimizer_second_such_as_adam>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#else
  trainer model{net{}, "adam", sparse_categorical_crossentropy{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
