// error: wrong_argument<.*because<.*the_data_must_come_in_batches_put_batch_after_it>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, validation(data::synthetic_digits(64, 1) | data::batch<32>));
#else
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, validation(data::synthetic_digits(64, 1)));
#endif
}
