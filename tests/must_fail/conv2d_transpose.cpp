// Layers that enlarge an image.
#include <strata/layers/conv2d_transpose.hpp>
#include <strata/layers/cropping2d.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/layers/up_sampling2d.hpp>
#include <strata/layers/zero_padding2d.hpp>
#include <strata/network/sequential.hpp>

using namespace strata;

// case: conv2d_transpose_after_dense
// error: shape_mismatch<.*at_index<2>.*by_layer<.*conv2d_transpose<8, 3.*receives<784>.*because<.*conv2d_transpose_takes_height_width_channels>
// whole program
#include <strata/strata.hpp>

#ifdef TWIN
using net = sequential<input<16>, dense<784, relu>, reshape<7, 7, 16>, conv2d_transpose<8, 3, stride<2>, same_padding>, flatten,
                       dense<16>>;
#else
using net = sequential<input<16>, dense<784, relu>, conv2d_transpose<8, 3, stride<2>, same_padding>, flatten, dense<16>>;
#endif
void train() {
  const std::vector<float> x(64 * 16);
  const data::array<float, shape{16}> rows(x);
  trainer model{net{}, adam{}, mean_squared_error{}};
  model.fit(data::from_tensor_slices(rows, rows) | data::batch<32>, epochs(1));
}

// case: conv2d_transpose_stride_and_dilation
// error: shape_mismatch<.*at_index<1>.*by_layer<.*conv2d_transpose<.*because<.*conv2d_transpose_takes_stride_or_dilation_not_both>
#ifdef TWIN
using net = sequential<input<8, 8, 3>, conv2d_transpose<4, 3, dilation<2>>>;
#else
using net = sequential<input<8, 8, 3>, conv2d_transpose<4, 3, stride<2>, dilation<2>>>;
#endif
net n;

// case: conv2d_transpose_without_filters
// error: shape_mismatch<.*at_index<1>.*by_layer<.*conv2d_transpose<0, 3>.*because<.*conv2d_transpose_needs_positive_settings>
#ifdef TWIN
using net = sequential<input<8, 8, 3>, conv2d_transpose<1, 3>>;
#else
using net = sequential<input<8, 8, 3>, conv2d_transpose<0, 3>>;
#endif
net n;

// case: up_sampling2d_after_flatten
// error: shape_mismatch<.*at_index<2>.*by_layer<.*up_sampling2d<2>.*receives<64>.*because<.*up_sampling2d_takes_height_width_channels>
#ifdef TWIN
using net = sequential<input<8, 8, 1>, up_sampling2d<2>, flatten>;
#else
using net = sequential<input<8, 8, 1>, flatten, up_sampling2d<2>>;
#endif
net n;

// case: up_sampling2d_size_zero
// error: shape_mismatch<.*at_index<1>.*by_layer<.*up_sampling2d<.*because<.*up_sampling2d_size_must_be_at_least_1>
#ifdef TWIN
using net = sequential<input<8, 8, 1>, up_sampling2d<2, sampling_size<1, 2>>>;
#else
using net = sequential<input<8, 8, 1>, up_sampling2d<2, sampling_size<0, 2>>>;
#endif
net n;

// case: zero_padding2d_after_flatten
// error: shape_mismatch<.*at_index<2>.*by_layer<.*zero_padding2d<1.*receives<64>.*because<.*zero_padding2d_takes_height_width_channels>
#ifdef TWIN
using net = sequential<input<8, 8, 1>, zero_padding2d<1>, flatten>;
#else
using net = sequential<input<8, 8, 1>, flatten, zero_padding2d<1>>;
#endif
net n;

// case: cropping2d_of_all_rows
// error: shape_mismatch<.*at_index<1>.*by_layer<.*cropping2d<4.*receives<8, 8, 1>.*because<.*cropping2d_must_leave_a_pixel>
#ifdef TWIN
using net = sequential<input<8, 8, 1>, cropping2d<4, 3, 0, 0>>;
#else
using net = sequential<input<8, 8, 1>, cropping2d<4, 4, 0, 0>>;
#endif
net n;

// case: zero_padding2d_negative
// error: shape_mismatch<.*at_index<1>.*by_layer<.*zero_padding2d<-1.*receives<8, 8, 1>.*because<.*zero_padding2d_must_not_be_negative>
#ifdef TWIN
using net = sequential<input<8, 8, 1>, zero_padding2d<1>>;
#else
using net = sequential<input<8, 8, 1>, zero_padding2d<-1>>;
#endif
net n;

// case: zero_padding2d_three_numbers
// error: shape_mismatch<.*at_index<1>.*by_layer<.*zero_padding2d<1, 2, 3.*receives<8, 8, 1>.*because<.*zero_padding2d_takes_one_two_or_four_numbers>
#ifdef TWIN
using net = sequential<input<8, 8, 1>, zero_padding2d<1, 2>>;
#else
using net = sequential<input<8, 8, 1>, zero_padding2d<1, 2, 3>>;
#endif
net n;
