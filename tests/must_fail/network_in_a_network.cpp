// error: shape_mismatch<.*at_index<2>.*receives<14, 14, 1>.*wants<28, 28, 1>.*because<.*an_inner_network_receives_the_shape_of_its_input>
// whole program
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<28, 28, 1>, max_pool2d<1>, sequential<input<28, 28, 1>, flatten, dense<10, softmax>>>;
#else
using net = sequential<input<28, 28, 1>, max_pool2d<2>, sequential<input<28, 28, 1>, flatten, dense<10, softmax>>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
