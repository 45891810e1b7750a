// error: wrong_argument<.*reporter.*because<.*the_hooks_of_evaluate_and_predict_take_a_pass_state>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
struct reporter {
  void on_epoch_end(training_state&) {}
#ifdef TWIN
  void on_test_end(pass_state&) {}
#else
  void on_test_end(training_state&) {}
#endif
};
void train() {
  const std::vector<float> x(80);
  const std::vector<int> y(10);
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(x, y, reporter{});
}
