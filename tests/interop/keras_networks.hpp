// The networks of test_keras_files.py: together they have every layer of strata.
#pragma once
#include <strata/strata.hpp>

namespace keras_networks {
using namespace strata;

using mlp = sequential<input<28, 28>, flatten, dense<128, relu>, dense<10, softmax>>;

using cnn = sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<>, conv2d<64, 3, relu>, max_pool2d<>, flatten,
                       dropout<0.5_r>, dense<10, softmax>>;

// Layers for images, in sequence.
using image =
    sequential<input<12, 12, 3>, normalization, conv2d<4, 3, same_padding, stride<2>, no_bias, kernel_regularizer<l2<1e-3_r>>>,
               batch_norm<momentum<0.9_r>>, activation<silu>,
               conv2d<8, 3, channel_groups<2>, dilation<2, 1>, kernel_size<2, 3>, same_padding, leaky_relu<0.1_r>>,
               zero_padding2d<1, 0, 2, 1>, up_sampling2d<2, bilinear_interpolation>, cropping2d<0, 2, 1, 2>,
               average_pool2d<2, pool_size<2, 3>>, conv2d_transpose<6, 3, stride<2>, elu<0.5_r>>,
               max_pool2d<3, stride<2>, same_padding>, layer_norm<epsilon<1e-5_r>>, dropout<0.25_r>,
               dropout<0.1_r, shape{1, 1, 6}>, reshape<-1, 6>, global_average_pool1d, dense<9, selu>, activation<softplus>,
               activation<linear>, dense<5, softmax>>;

// Branches, whose layers Keras lists in another order than strata, and every join.
using graph = sequential<
    input<6, 6, 4>, residual<conv2d<4, 3, same_padding, relu>, batch_norm<no_scale>>,
    concat<branch<conv2d<3, 1>>, branch<conv2d<3, 3, same_padding, tanh_activation>, conv2d<2, 3, same_padding>>, branch<>>,
    add<branch<conv2d<4, 1, sigmoid>>, branch<conv2d<4, 3, same_padding, gelu>>>, average<branch<conv2d<4, 1, relu6>>, branch<>>,
    maximum<branch<>, branch<conv2d<4, 1>>>, multiply<branch<conv2d<4, 1, softsign>>, branch<>>,
    subtract<branch<conv2d<4, 1>, layer_norm<>>, branch<>>, up_sampling2d<>, global_max_pool2d, dense<5, softmax>>;

using gap = sequential<input<5, 5, 2>, conv2d<6, 2, stride<2, 1>, leaky_relu<>>, global_average_pool2d, dense<5, softmax>>;

// Depthwise and separable convolutions.
using separated =
    sequential<input<9, 8, 3>, rescaling<2_r, -1_r>, depthwise_conv2d<3, same_padding, stride<2>, depth_multiplier<2>, hard_silu>,
               separable_conv2d<5, 2, kernel_size<2, 1>, relu, pointwise_regularizer<l2<1e-3_r>>>,
               depthwise_conv2d<2, dilation<2>, same_padding, no_bias>, activation<hard_sigmoid>,
               separable_conv2d<4, 3, same_padding, no_bias, hard_sigmoid>, flatten, dense<5, softmax>>;

using words =
    sequential<input<7>, embedding<20, 6>, layer_norm<no_center>, global_max_pool1d, dense<8, elu<>>, dense<5, softmax>>;

// To be trained in both, so it uses no random numbers.
using trained = sequential<input<6, 6, 2>, conv2d<4, 3, relu>, batch_norm<>, residual<conv2d<4, 3, same_padding>>, flatten,
                           dense<16, tanh_activation, kernel_regularizer<l2<1e-3_r>>>, dense<5, softmax>>;

// The same layers, some of them frozen, below and between trained ones.
using tuned = sequential<
    input<6, 6, 2>, frozen<conv2d<4, 3, relu>, batch_norm<no_scale>>, conv2d<4, 3>,
    frozen<batch_norm<>, activation<tanh_activation>, flatten, dense<16, tanh_activation, kernel_regularizer<l2<1e-3_r>>>>,
    dense<5, softmax, kernel_regularizer<l2<1e-3_r>>>>;

}  // namespace keras_networks
