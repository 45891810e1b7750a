// error: shape_mismatch<.*at_index<1>.*by_layer<.*residual<.*receives<28, 28, 1>.*beside<28, 28, 4>.*because<.*residual_keeps_the_channels_or_use_add_with_a_branch_of_conv2d_1x1>
// whole program
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<28, 28, 1>, add<branch<conv2d<4, 1>>, branch<conv2d<4, 1>>>, flatten, dense<10, softmax>>;
#else
using net = sequential<input<28, 28, 1>, residual<conv2d<4, 1>>, flatten, dense<10, softmax>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
