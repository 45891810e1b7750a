// error: shape_mismatch<.*at_index<2>.*by_layer<.*dense<10.*receives<26, 26, 32>.*because<.*dense_takes_a_rank_1_shape_put_flatten_in_front>
// whole program
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, flatten, dense<10, softmax>>;
#else
using net = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, dense<10, softmax>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
