// error: wrong_argument<.*accuracy.*because<.*a_trainer_takes_a_loss_third_such_as_mean_squared_error>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}};
#else
  trainer model{net{}, adam{}, accuracy{}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
