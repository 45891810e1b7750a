// Pooling.
#include <strata/layers/activations.hpp>
#include <strata/layers/average_pool2d.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/layers/global_pool1d.hpp>
#include <strata/layers/global_pool2d.hpp>
#include <strata/layers/max_pool2d.hpp>
#include <strata/layers/reshape.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;

// case: average_pool2d_after_flatten
// error: shape_mismatch<.*at_index<2>.*by_layer<.*average_pool2d<2>.*receives<64>.*because<.*pooling_takes_height_width_channels>
#ifdef TWIN
using net = sequential<input<8, 8, 1>, average_pool2d<2>, flatten>;
#else
using net = sequential<input<8, 8, 1>, flatten, average_pool2d<2>>;
#endif
net n;

// case: average_pool2d_window_too_large
// error: shape_mismatch<.*at_index<1>.*by_layer<.*average_pool2d<4>.*receives<3, 8, 1>.*because<.*pooling_window_is_larger_than_the_image_pool_less_often>
#ifdef TWIN
using net = sequential<input<3, 8, 1>, average_pool2d<3>>;
#else
using net = sequential<input<3, 8, 1>, average_pool2d<4>>;
#endif
net n;

// case: global_average_pool1d_of_an_image
// error: shape_mismatch<.*at_index<1>.*by_layer<.*global_average_pool1d.*receives<8, 8, 3>.*because<.*global_pooling_takes_steps_channels>
#ifdef TWIN
using net = sequential<input<8, 8, 3>, reshape<64, 3>, global_average_pool1d>;
#else
using net = sequential<input<8, 8, 3>, global_average_pool1d>;
#endif
net n;

// case: global_average_pool2d_twice
// error: shape_mismatch<.*at_index<2>.*by_layer<.*global_average_pool2d.*receives<3>.*because<.*pooling_takes_height_width_channels>
#ifdef TWIN
using net = sequential<input<8, 8, 3>, global_average_pool2d>;
#else
using net = sequential<input<8, 8, 3>, global_average_pool2d, global_average_pool2d>;
#endif
net n;

// case: max_pool2d_activation
// error: wrong_option<.*at_index<1>.*by_layer<.*max_pool2d<2.*relu.*because<.*the_layer_takes_no_activation>
#ifdef TWIN
using net = sequential<input<8, 8, 1>, max_pool2d<2, stride<1>>>;
#else
using net = sequential<input<8, 8, 1>, max_pool2d<2, relu>>;
#endif
net n;

// case: max_pool2d_after_flatten
// error: shape_mismatch<.*at_index<2>.*by_layer<.*max_pool2d<2>.*receives<64>.*because<.*pooling_takes_height_width_channels>
#ifdef TWIN
using net = sequential<input<8, 8, 1>, max_pool2d<2>, flatten>;
#else
using net = sequential<input<8, 8, 1>, flatten, max_pool2d<2>>;
#endif
net n;

// case: max_pool2d_window_too_large
// error: shape_mismatch<.*at_index<3>.*by_layer<.*max_pool2d<4>.*receives<1, 1, 1>.*because<.*pooling_window_is_larger_than_the_image_pool_less_often>
// whole program
#include <strata/strata.hpp>

#ifdef TWIN
using net = sequential<input<28, 28, 1>, max_pool2d<5>, max_pool2d<5>, max_pool2d<4, same_padding>, flatten, dense<10, softmax>>;
#else
using net = sequential<input<28, 28, 1>, max_pool2d<5>, max_pool2d<5>, max_pool2d<4>, flatten, dense<10, softmax>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}

// case: max_pool2d_without_window
// error: shape_mismatch<.*at_index<1>.*by_layer<.*max_pool2d<0>.*receives<8, 8, 1>.*because<.*pooling_needs_positive_settings>
#ifdef TWIN
using net = sequential<input<8, 8, 1>, max_pool2d<1>>;
#else
using net = sequential<input<8, 8, 1>, max_pool2d<0>>;
#endif
net n;
