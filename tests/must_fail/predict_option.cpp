// error: wrong_argument<.*batch_size.*because<.*predict_takes_callbacks_after_the_data>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
struct counter {
  void on_predict_end(pass_state&) {}
};
void predict() {
  const std::vector<float> x(80);
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.predict(x, counter{});
#else
  model.predict(x, batch_size(32));
#endif
}
