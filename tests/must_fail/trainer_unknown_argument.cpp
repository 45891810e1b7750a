// error: wrong_argument<.*int.*because<.*a_trainer_takes_metrics_a_strategy_a_precision_and_a_seed>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
#ifdef TWIN
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, seed(3)};
#else
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}, 3};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
