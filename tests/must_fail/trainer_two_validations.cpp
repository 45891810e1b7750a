// error: wrong_argument<.*validation_split.*because<.*validation_and_validation_split_exclude_each_other>
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<8>, dense<10, softmax>>;
void train() {
  const std::vector<float> x(80);
  const std::vector<int> y(10);
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(x, y, validation(x, y));
#else
  model.fit(x, y, validation(x, y), validation_split(0.2));
#endif
}
