// error: shape_mismatch<.*at_index<1>.*by_layer<.*sparse_categorical_crossentropy.*receives<26, 26, 4>
// whole program
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<28, 28, 1>, conv2d<4, 3>, flatten, dense<10, softmax>>;
#else
using net = sequential<input<28, 28, 1>, conv2d<4, 3>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
