// error: shape_mismatch<.*at_index<1>.*by_layer<.*depthwise_conv2d<3, .*depth_multiplier<0>.*receives<28, 28, 1>.*because<.*depthwise_conv2d_needs_positive_settings>
// whole program
#include <strata/strata.hpp>

using namespace strata;
#ifdef TWIN
using net = sequential<input<28, 28, 1>, depthwise_conv2d<3, depth_multiplier<2>>, flatten, dense<10, softmax>>;
#else
using net = sequential<input<28, 28, 1>, depthwise_conv2d<3, depth_multiplier<0>>, flatten, dense<10, softmax>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
