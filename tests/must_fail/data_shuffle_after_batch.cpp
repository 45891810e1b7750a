// error: data::shuffle takes a view of samples or elements: put it before batch
// whole program
#include <strata/strata.hpp>

using namespace strata;
using net = sequential<input<28, 28, 1>, flatten, dense<10, softmax>>;
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
#ifdef TWIN
  model.fit(data::synthetic_digits(64, 1) | data::shuffle(64) | data::batch<32>, epochs(1));
#else
  model.fit(data::synthetic_digits(64, 1) | data::batch<32> | data::shuffle(64), epochs(1));
#endif
}
