// error: wrong_argument<.*counter.*because<.*a_callback_that_changes_in_fit_cannot_be_const>
// whole program
#include <strata/strata.hpp>
using namespace strata;

struct counter {
  int epochs = 0;
  void on_epoch_end(training_state&) { ++epochs; }
};

inline void train() {
  trainer model{sequential<input<28, 28, 1>, flatten, dense<10, softmax>>{}, sgd{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  counter counts;
#else
  const counter counts;
#endif
  model.fit(data::synthetic_digits(64, 1) | data::batch<64>, counts);
}
