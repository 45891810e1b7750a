// error: wrong_argument<.*because<.*predict_takes_batches_or_two_spans_of_inputs_and_predictions>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
void train() {
  std::vector<float> x(80), predictions(100);
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.predict(x, predictions);
#else
  model.predict(x);
#endif
}
