// conv2d, depthwise_conv2d and separable_conv2d.
#include <strata/layers/conv2d.hpp>
#include <strata/layers/dropout.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;

// case: conv2d_after_flatten
// error: shape_mismatch<.*at_index<2>.*by_layer<.*conv2d<4, 3>.*receives<64>.*because<.*conv2d_takes_height_width_channels>
#ifdef TWIN
using net = sequential<input<8, 8, 1>, conv2d<4, 3>, flatten>;
#else
using net = sequential<input<8, 8, 1>, flatten, conv2d<4, 3>>;
#endif
net n;

// case: conv2d_channels_first
// error: shape_mismatch<.*at_index<1>.*receives<1, 28, 28>.*channels_come_last>
// whole program
#include <strata/strata.hpp>

#ifdef TWIN
using net = sequential<input<1, 28, 28>, reshape<28, 28, 1>, conv2d<32, 3>, flatten, dense<10, softmax>>;
#else
using net = sequential<input<1, 28, 28>, conv2d<32, 3>, flatten, dense<10, softmax>>;
#endif
void train() {
  const data::array<float, shape{1, 28, 28}> x;
  const std::vector<int> y;
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::from_tensor_slices(x, y) | data::batch<32>, epochs(1));
}

// case: conv2d_dilated_kernel_too_large
// error: shape_mismatch<.*at_index<1>.*by_layer<.*conv2d<4, 3.*dilation<3.*receives<6, 6, 1>.*because<.*conv2d_kernel_is_larger_than_the_image_use_same_padding>
#ifdef TWIN
using net = sequential<input<6, 6, 1>, conv2d<4, 3, dilation<2>>>;
#else
using net = sequential<input<6, 6, 1>, conv2d<4, 3, dilation<3>>>;
#endif
net n;

// case: conv2d_groups_do_not_divide
// error: shape_mismatch<.*at_index<1>.*by_layer<.*conv2d<8, 3.*channel_groups<4>.*receives<8, 8, 6>.*because<.*conv2d_groups_must_divide_channels_and_filters>
#ifdef TWIN
using net = sequential<input<8, 8, 4>, conv2d<8, 3, channel_groups<4>>>;
#else
using net = sequential<input<8, 8, 6>, conv2d<8, 3, channel_groups<4>>>;
#endif
net n;

// case: conv2d_kernel_too_large
// error: shape_mismatch<.*at_index<1>.*by_layer<.*conv2d<4, 5>.*receives<4, 8, 1>.*because<.*conv2d_kernel_is_larger_than_the_image_use_same_padding>
#ifdef TWIN
using net = sequential<input<4, 8, 1>, conv2d<4, 5, same_padding>>;
#else
using net = sequential<input<4, 8, 1>, conv2d<4, 5>>;
#endif
net n;

// case: conv2d_stride_and_dilation
// error: shape_mismatch<.*at_index<1>.*by_layer<.*conv2d<4, 3.*.*receives<9, 9, 1>.*because<.*conv2d_takes_stride_or_dilation_not_both>
#ifdef TWIN
using net = sequential<input<9, 9, 1>, conv2d<4, 3, dilation<2>>>;
#else
using net = sequential<input<9, 9, 1>, conv2d<4, 3, stride<2>, dilation<2>>>;
#endif
net n;

// case: conv2d_stride_zero
// error: shape_mismatch<.*at_index<1>.*by_layer<.*conv2d<4, 3.*stride<0.*receives<8, 8, 1>.*because<.*conv2d_needs_positive_settings>
#ifdef TWIN
using net = sequential<input<8, 8, 1>, conv2d<4, 3, stride<2>>>;
#else
using net = sequential<input<8, 8, 1>, conv2d<4, 3, stride<0>>>;
#endif
net n;

// case: conv2d_unknown_option
// error: wrong_option<.*at_index<1>.*by_layer<.*conv2d<4, 3.*flatten_first.*because<.*the_layer_does_not_know_this_option>
struct flatten_first {};
#ifdef TWIN
using net = sequential<input<9, 9, 1>, conv2d<4, 3, valid_padding>>;
#else
using net = sequential<input<9, 9, 1>, conv2d<4, 3, flatten_first>>;
#endif
net n;

// case: conv2d_without_channels
// error: shape_mismatch<.*at_index<1>.*by_layer<.*conv2d<32, 3.*receives<28, 28>.*write_input_with_a_last_extent_of_1>
// whole program
#include <strata/strata.hpp>

#ifdef TWIN
using net = sequential<input<28, 28>, reshape<28, 28, 1>, conv2d<32, 3>, flatten, dense<10, softmax>>;
#else
using net = sequential<input<28, 28>, conv2d<32, 3>, flatten, dense<10, softmax>>;
#endif
void train() {
  const data::array<float, shape{28, 28}> x;
  const std::vector<int> y;
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::from_tensor_slices(x, y) | data::batch<32>, epochs(1));
}

// case: conv2d_without_filters
// error: shape_mismatch<.*at_index<1>.*by_layer<.*conv2d<0, 3>.*receives<8, 8, 1>.*because<.*conv2d_needs_positive_settings>
#ifdef TWIN
using net = sequential<input<8, 8, 1>, conv2d<1, 3>>;
#else
using net = sequential<input<8, 8, 1>, conv2d<0, 3>>;
#endif
net n;

// case: depthwise_conv2d_multiplier_zero
// error: shape_mismatch<.*at_index<1>.*by_layer<.*depthwise_conv2d<3, .*depth_multiplier<0>.*receives<28, 28, 1>.*because<.*depthwise_conv2d_needs_positive_settings>
// whole program
#include <strata/strata.hpp>

#ifdef TWIN
using net = sequential<input<28, 28, 1>, depthwise_conv2d<3, depth_multiplier<2>>, flatten, dense<10, softmax>>;
#else
using net = sequential<input<28, 28, 1>, depthwise_conv2d<3, depth_multiplier<0>>, flatten, dense<10, softmax>>;
#endif
void train() {
  trainer model{net{}, adam{}, sparse_categorical_crossentropy{}};
  model.fit(data::synthetic_digits(64, 1) | data::batch<32>, epochs(1));
}
