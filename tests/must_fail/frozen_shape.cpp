// error: shape_mismatch<.*at_index<2, 1>.*by_layer<.*dense<10>.*receives<26, 26, 8>
// whole program
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<28, 28, 1>, conv2d<8, 3>, frozen<activation<relu>, flatten, dense<10>>, dense<10, softmax>>;
#else
using net = sequential<input<28, 28, 1>, conv2d<8, 3>, frozen<activation<relu>, dense<10>>, dense<10, softmax>>;
#endif
void train() {
  const std::vector<float> x(784);
  const std::vector<int> y(1);
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(x, y);
}
