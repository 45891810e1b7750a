// error: wrong_argument<.*printer.*because<.*fit_takes_options_and_callbacks_which_have_hooks_such_as_on_epoch_end>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
struct printer {
#ifdef TWIN
  void on_epoch_end(training_state&) {}
#else
  void after_each_epoch(training_state&) {}
#endif
};
void train(const std::vector<float>& x, const std::vector<int>& y) {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(x, y, printer{});
}
