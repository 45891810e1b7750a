// error: shape_mismatch<.*at_index<1>.*by_layer<.*residual<.*receives<28, 28, 1>.*beside<26, 26, 1>.*because<.*residual_keeps_height_and_width_use_same_padding>
// whole program
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<28, 28, 1>, residual<conv2d<1, 3, same_padding>>, flatten, dense<10, softmax>>;
#else
using net = sequential<input<28, 28, 1>, residual<conv2d<1, 3>>, flatten, dense<10, softmax>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
