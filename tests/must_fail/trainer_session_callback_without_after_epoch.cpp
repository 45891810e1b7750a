// error: incomplete_model<.*saver.*because<.*session_callbacks_have_restore_after_step_after_epoch_and_after_training>
#include <strata/strata.hpp>
#include <strata/train/fit_session.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
struct saver {
  void restore(training_session&) {}
  void after_step(training_session&) {}
#ifdef TWIN
  void after_epoch(training_session&) {}
#endif
  void after_training(training_session&) {}
};
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<64>, saver{});
}
