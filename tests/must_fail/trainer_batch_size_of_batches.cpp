// error: wrong_argument<.*batch_size.*because<.*batch_size_and_shuffle_go_with_arrays_a_data_set_has_stages_batch_and_shuffle>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(data::synthetic_digits(64, 1) | data::batch(32), epochs(1));
#else
  model.fit(data::synthetic_digits(64, 1) | data::batch<64>, batch_size(32), epochs(1));
#endif
}
