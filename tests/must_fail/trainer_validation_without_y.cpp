// error: wrong_argument<.*validation<.*because<.*validation_takes_x_and_y_or_batches>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
void train(const std::vector<float>& x, const std::vector<int>& y) {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(x, y, validation(x, y));
#else
  model.fit(x, y, validation(x));
#endif
}
