// error: wrong_argument<.*printer.*because<.*the_hooks_of_fit_are_on_train_epoch_or_batch_and_begin_or_end>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
struct printer {
  void on_train_begin(training_state&) {}
#ifdef TWIN
  void on_epoch_end(training_state&) {}
#else
  void on_epoch_ends(training_state&) {}
#endif
};
void train(const std::vector<float>& x, const std::vector<int>& y) {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(x, y, printer{});
}
