// error: data_mismatch<.*the_loss_takes_labels<.*the_data_set_has_labels<.*because<.*use_categorical_crossentropy_or_leave_out_one_hot>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
#else
  model.fit(data::synthetic_digits(64, 1) | data::one_hot<10> | data::batch<32>, epochs(1));
#endif
}
