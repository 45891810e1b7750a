// conv2d: shapes, parameters, options, and what it refuses.
#include "layer_shapes.hpp"
#include <strata/layers/conv2d.hpp>
#include <strata/layers/max_pool2d.hpp>
using namespace strata;
using namespace strata::core;
using namespace strata::test;

static_assert(called<conv2d<8, 3>>("conv2d", "Conv2D"));

// Valid: (H - reach) / stride + 1, rounded down.
static_assert(gives<conv2d<8, 3>>({28, 28, 1}, {26, 26, 8}));
static_assert(gives<conv2d<8, 3>>({3, 3, 1}, {1, 1, 8}));
static_assert(gives<conv2d<8, 1>>({5, 7, 3}, {5, 7, 8}));
static_assert(gives<conv2d<8, 2>>({5, 7, 3}, {4, 6, 8}));
static_assert(gives<conv2d<8, 3, stride<2>>>({28, 27, 1}, {13, 13, 8}));
static_assert(gives<conv2d<8, 3, stride<2, 1>>>({28, 27, 1}, {13, 25, 8}));
static_assert(gives<conv2d<8, 3, dilation<2>>>({28, 27, 1}, {24, 23, 8}));
static_assert(gives<conv2d<8, 3, dilation<1, 3>>>({28, 27, 1}, {26, 21, 8}));
static_assert(gives<conv2d<8, 3, kernel_size<1, 5>>>({28, 27, 1}, {28, 23, 8}));
// Same: ceil(H / stride).
static_assert(gives<conv2d<8, 3, same_padding>>({28, 28, 1}, {28, 28, 8}));
static_assert(gives<conv2d<8, 3, same_padding, stride<2>>>({28, 27, 1}, {14, 14, 8}));
static_assert(gives<conv2d<8, 7, same_padding, dilation<3>>>({5, 4, 1}, {5, 4, 8}));
static_assert(gives<conv2d<8, 3, same_padding, stride<3>>>({1, 7, 1}, {1, 3, 8}));
static_assert(gives<conv2d<8, 3, same_padding, valid_padding>>({28, 28, 1}, {26, 26, 8}));  // the last one counts
static_assert(gives<conv2d<8, 3, channel_groups<4>>>({28, 28, 4}, {26, 26, 8}));

// Zeros before the first element; the odd one goes to the end.
static_assert(window_axis{5, 3, 1, 1, true}.padding() == 1 && window_axis{5, 2, 1, 1, true}.padding() == 0);
static_assert(window_axis{6, 3, 2, 1, true}.padding() == 0 && window_axis{5, 3, 2, 1, true}.padding() == 1);
static_assert(window_axis{5, 3, 1, 2, true}.padding() == 2 && window_axis{5, 3, 1, 1, false}.padding() == 0);
static_assert(window_axis{9, 1, 3, 1, true}.padding() == 0);  // a window smaller than its stride needs none

// The order of the options does not matter: kernels are keyed by what they mean.
static_assert(std::is_same_v<operations_of<conv2d<8, 3, stride<2>, relu, same_padding>>,
                             operations_of<conv2d<8, 3, same_padding, stride<2>, relu>>>);
static_assert(std::is_same_v<
              operations_of<conv2d<8, 3, relu, no_bias>>,
              type_list<convolution<conv_settings{.filters = 8, .kernel_height = 3, .kernel_width = 3, .bias = false}>, relu>>);

// Refusals.
static_assert(refuses<conv2d<8, 3>>({784}, reasons::conv2d_takes_height_width_channels));
static_assert(refuses<conv2d<8, 3>>({28, 28}, reasons::conv2d_takes_height_width_channels_write_input_with_a_last_extent_of_1));
static_assert(refuses<conv2d<8, 3>>({2, 28, 1}, reasons::conv2d_kernel_is_larger_than_the_image_use_same_padding));
static_assert(refuses<conv2d<8, 3>>({28, 2, 1}, reasons::conv2d_kernel_is_larger_than_the_image_use_same_padding));
static_assert(refuses<conv2d<8, 3, dilation<2>>>({4, 5, 1}, reasons::conv2d_kernel_is_larger_than_the_image_use_same_padding));
static_assert(gives<conv2d<8, 3, dilation<2>>>({5, 5, 1}, {1, 1, 8}));
static_assert(gives<conv2d<8, 3, same_padding>>({2, 2, 1}, {2, 2, 8}));
static_assert(refuses<conv2d<0, 3>>({28, 28, 1}, reasons::conv2d_needs_positive_settings));
static_assert(refuses<conv2d<8, 0>>({28, 28, 1}, reasons::conv2d_needs_positive_settings));
static_assert(refuses<conv2d<8, -3>>({28, 28, 1}, reasons::conv2d_needs_positive_settings));
static_assert(refuses<conv2d<8, 3, stride<0>>>({28, 28, 1}, reasons::conv2d_needs_positive_settings));
static_assert(refuses<conv2d<8, 3, stride<1, -1>>>({28, 28, 1}, reasons::conv2d_needs_positive_settings));
static_assert(refuses<conv2d<8, 3, dilation<0>>>({28, 28, 1}, reasons::conv2d_needs_positive_settings));
static_assert(refuses<conv2d<8, 3, channel_groups<0>>>({28, 28, 1}, reasons::conv2d_needs_positive_settings));
static_assert(refuses<conv2d<8, 3, kernel_size<3, 0>>>({28, 28, 1}, reasons::conv2d_needs_positive_settings));
static_assert(refuses<conv2d<8, 3, channel_groups<3>>>({28, 28, 4}, reasons::conv2d_groups_must_divide_channels_and_filters));
static_assert(refuses<conv2d<9, 3, channel_groups<4>>>({28, 28, 4}, reasons::conv2d_groups_must_divide_channels_and_filters));
static_assert(refuses<conv2d<8, 3, stride<2>, dilation<2>>>({28, 28, 1}, reasons::conv2d_takes_stride_or_dilation_not_both));

// Parameters.
static_assert(parameter_count<conv2d<8, 3>>({28, 28, 4}) == 2 && parameter_count<conv2d<8, 3, no_bias>>({28, 28, 4}) == 1);
static_assert(is(parameter_of<conv2d<8, 3>>({28, 28, 4}, 0), "kernel", {3, 3, 4, 8}, "glorot_uniform"));
static_assert(is(parameter_of<conv2d<8, 3>>({28, 28, 4}, 1), "bias", {8}, "zeros"));
static_assert(is(parameter_of<conv2d<8, 3, channel_groups<4>, kernel_size<2, 5>>>({28, 28, 4}, 0), "kernel", {2, 5, 1, 8},
                 "glorot_uniform"));
static_assert(is(parameter_of<conv2d<8, 3, kernel_initializer<ones>>>({28, 28, 4}, 0), "kernel", {3, 3, 4, 8}, "ones"));
static_assert(is(parameter_of<conv2d<8, 3, kernel_initializer<ones>>>({28, 28, 4}, 1), "bias", {8}, "zeros"));

// Options of other layers.
static_assert(misused<conv2d<8, 3, relu, pool_size<2, 2>>>(1, reasons::the_layer_does_not_know_this_option));
static_assert(misused<conv2d<8, 3, gamma_initializer<ones>>>(0, reasons::the_layer_does_not_know_this_option));
static_assert(misused<conv2d<8, 3, int>>(0, reasons::the_layer_does_not_know_this_option));
static_assert(misused<conv2d<8, 3, relu, same_padding, gelu>>(2, reasons::a_layer_takes_one_activation));
static_assert(well_used<conv2d<8, 3, relu, bias_regularizer<l2<>>>>());
