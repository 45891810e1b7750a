// error: shape_mismatch<.*at_index<3>.*by_layer<.*max_pool2d<4>.*receives<1, 1, 1>.*because<.*pooling_window_is_larger_than_the_image_pool_less_often>
// whole program
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<28, 28, 1>, max_pool2d<5>, max_pool2d<5>, max_pool2d<4, same_padding>, flatten, dense<10, softmax>>;
#else
using net = sequential<input<28, 28, 1>, max_pool2d<5>, max_pool2d<5>, max_pool2d<4>, flatten, dense<10, softmax>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
