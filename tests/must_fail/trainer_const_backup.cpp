// error: wrong_argument<.*backup_and_restore.*because<.*a_callback_that_changes_in_fit_cannot_be_const>
// whole program
#include <strata/strata.hpp>
#include <strata/train/backup_and_restore.hpp>
using namespace strata;

inline void train() {
  trainer model{sequential<input<28, 28, 1>, flatten, dense<10, softmax>>{}, sgd{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  backup_and_restore backup{"folder"};
#else
  const backup_and_restore backup{"folder"};
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<64>, backup);
}
