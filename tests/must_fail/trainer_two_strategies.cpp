// error: wrong_argument<.*mirrored.*because<.*a_trainer_takes_one_strategy_one_precision_and_one_seed>
// whole program
#include <strata/distribute/mirrored.hpp>
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, accuracy{}, mirrored{cpus(2)}};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, one_device{}, accuracy{}, mirrored{cpus(2)}};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
