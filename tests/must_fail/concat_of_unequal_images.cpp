// error: shape_mismatch<.*at_index<1>.*by_layer<.*concat<.*receives<28, 28, 2>.*beside<26, 26, 4>.*because<.*concat_takes_branches_that_differ_only_in_channels_use_same_padding>
// whole program
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using net =
    sequential<input<28, 28, 1>, concat<branch<conv2d<4, 3, same_padding>>, branch<conv2d<2, 1>>>, flatten, dense<10, softmax>>;
#else
using net = sequential<input<28, 28, 1>, concat<branch<conv2d<4, 3>>, branch<conv2d<2, 1>>>, flatten, dense<10, softmax>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
