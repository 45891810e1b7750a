// error: wrong_argument<.*dense<10>.*because<.*a_trainer_takes_a_network_first_such_as_sequential>
// whole program
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
#else
using net = dense<10>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
