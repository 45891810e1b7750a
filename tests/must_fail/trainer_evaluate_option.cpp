// error: wrong_argument<.*epochs.*because<.*evaluate_takes_batch_size_sample_weight_and_callbacks>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
void train() {
  const std::vector<float> x(80), w(10);
  const std::vector<int> y(10);
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.evaluate(x, y, sample_weight(w));
#else
  model.evaluate(x, y, epochs(3));
#endif
}
