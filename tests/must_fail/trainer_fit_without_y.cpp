// error: wrong_argument<.*because<.*fit_takes_arrays_of_numbers_x_and_y_or_batches_of_a_data_set>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
void train() {
  const std::vector<float> x(80);
  const std::vector<int> y(10);
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(x, y, epochs(1));
#else
  model.fit(x, epochs(1));
#endif
}
