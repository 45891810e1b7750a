// conv2d_transpose: shapes, parameters, options, and what it refuses.
#include "layer_shapes.hpp"
#include <strata/layers/conv2d_transpose.hpp>
using namespace strata;
using namespace strata::core;
using namespace strata::test;

static_assert(called<conv2d_transpose<8, 3>>("conv2d_transpose", "Conv2DTranspose"));

// Valid: (H - 1) * stride + max(reach, stride).
static_assert(gives<conv2d_transpose<8, 3>>({7, 5, 4}, {9, 7, 8}) && gives<conv2d_transpose<8, 1>>({7, 5, 4}, {7, 5, 8}));
static_assert(gives<conv2d_transpose<8, 2, stride<2>>>({7, 5, 4}, {14, 10, 8}));
static_assert(gives<conv2d_transpose<8, 3, stride<2, 1>>>({7, 5, 4}, {15, 7, 8}));
static_assert(gives<conv2d_transpose<8, 1, stride<3>>>({7, 5, 4}, {21, 15, 8}));
static_assert(gives<conv2d_transpose<8, 3, dilation<2>>>({7, 5, 4}, {11, 9, 8}));
static_assert(gives<conv2d_transpose<8, 3, kernel_size<1, 5>>>({7, 5, 4}, {7, 9, 8}));
// Same: H * stride.
static_assert(gives<conv2d_transpose<8, 3, same_padding, stride<2>>>({7, 5, 4}, {14, 10, 8}));
static_assert(gives<conv2d_transpose<8, 5, same_padding>>({7, 5, 4}, {7, 5, 8}));
// The convolution backwards gives the shape of the input.
static_assert(convolution<transposed_conv_settings{8, 2, 3, 3, 2}.backwards({7, 5, 4})>::output_shape({21, 11, 8}).value ==
              shape{7, 5, 4});

static_assert(is(parameter_of<conv2d_transpose<8, 3>>({7, 5, 4}, 0), "kernel", {3, 3, 8, 4}, "glorot_uniform"));
static_assert(is(parameter_of<conv2d_transpose<8, 3>>({7, 5, 4}, 1), "bias", {8}, "zeros"));
static_assert(parameter_count<conv2d_transpose<8, 3, no_bias>>({7, 5, 4}) == 1);
static_assert(std::is_same_v<operations_of<conv2d_transpose<8, 3, stride<2>, relu, same_padding>>,
                             operations_of<conv2d_transpose<8, 3, same_padding, stride<2>, relu>>>);

static_assert(refuses<conv2d_transpose<8, 3>>({7}, reasons::conv2d_transpose_takes_height_width_channels));
static_assert(refuses<conv2d_transpose<0, 3>>({7, 5, 4}, reasons::conv2d_transpose_needs_positive_settings));
static_assert(refuses<conv2d_transpose<8, 3, stride<0>>>({7, 5, 4}, reasons::conv2d_transpose_needs_positive_settings));
static_assert(refuses<conv2d_transpose<8, 3, stride<2>, dilation<2>>>(
    {7, 5, 4}, reasons::conv2d_transpose_takes_stride_or_dilation_not_both));
static_assert(misused<conv2d_transpose<8, 3, channel_groups<2>>>(0, reasons::the_layer_does_not_know_this_option));
static_assert(misused<conv2d_transpose<8, 3, relu, relu>>(1, reasons::a_layer_takes_one_activation));
