// error: shape_mismatch<.*at_index<1, 1, 2>.*by_layer<.*dense<4>.*receives<26, 26, 8>
// whole program
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<28, 28, 1>,
                       concat<sequential<flatten, dense<8>>, sequential<conv2d<8, 3>, activation<relu>, flatten, dense<4>>>,
                       dense<10, softmax>>;
#else
using net =
    sequential<input<28, 28, 1>, concat<sequential<flatten, dense<8>>, sequential<conv2d<8, 3>, activation<relu>, dense<4>>>,
               dense<10, softmax>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
