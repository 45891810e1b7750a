// The networks of `bench/run sweep`; bench/peers/networks.py has the same ones for the peers.
#pragma once
#include <strata/strata.hpp>

namespace strata::bench {

/// The reference convolutional network on MNIST.
struct cnn : sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<2>, conv2d<64, 3, relu>, max_pool2d<2>, flatten,
                        dense<64, relu>, dense<10, softmax>> {};

struct mlp_128 : sequential<input<28, 28, 1>, flatten, dense<128, relu>, dense<10, softmax>> {};
struct mlp_64_64 : sequential<input<28, 28, 1>, flatten, dense<64, relu>, dense<64, relu>, dense<10, softmax>> {};
struct mlp_512_512 : sequential<input<28, 28, 1>, flatten, dense<512, relu>, dense<512, relu>, dense<10, softmax>> {};
struct wide_mlp : sequential<input<1024>, dense<2048, relu>, dense<2048, relu>, dense<100, softmax>> {};

/// An autoencoder, trained with binary_crossentropy.
struct autoencoder : sequential<input<784>, dense<256, relu>, dense<32, relu>, dense<256, relu>, dense<784, sigmoid>> {};

/// LeNet-5 (LeCun et al. 1998) with tanh and average pooling; each filter reads all channels.
struct lenet5
    : sequential<input<28, 28, 1>, conv2d<6, 5, same_padding, tanh_activation>, average_pool2d<2>, conv2d<16, 5, tanh_activation>,
                 average_pool2d<2>, flatten, dense<120, tanh_activation>, dense<84, tanh_activation>, dense<10, softmax>> {};

/// Like VGG (Simonyan and Zisserman 2015), for CIFAR-10.
struct vgg : sequential<input<32, 32, 3>, conv2d<64, 3, same_padding, relu>, conv2d<64, 3, same_padding, relu>, max_pool2d<2>,
                        conv2d<128, 3, same_padding, relu>, conv2d<128, 3, same_padding, relu>, max_pool2d<2>,
                        conv2d<256, 3, same_padding, relu>, conv2d<256, 3, same_padding, relu>, max_pool2d<2>, flatten,
                        dense<256, relu>, dense<10, softmax>> {};

/// A convolution without bias, batch normalisation, relu.
template <int Filters, int Kernel, class... Options>
using normalized_conv = branch<conv2d<Filters, Kernel, same_padding, no_bias, Options...>, batch_norm<>, activation<relu>>;

/// A residual block of two convolutions. The short cut is the identity, or a strided 1x1 convolution where the shape changes.
template <int Filters, int Stride, class... ShortCut>
using residual_block =
    branch<add<branch<normalized_conv<Filters, 3, stride<Stride>>, conv2d<Filters, 3, same_padding, no_bias>, batch_norm<>>,
               branch<ShortCut...>>,
           activation<relu>>;
template <int Filters>
using widening_block = residual_block<Filters, 2, conv2d<Filters, 1, stride<2>, no_bias>, batch_norm<>>;

/// He et al. 2016, the CIFAR-10 variant with n = 3.
struct resnet20
    : sequential<input<32, 32, 3>, normalized_conv<16, 3>, residual_block<16, 1>, residual_block<16, 1>, residual_block<16, 1>,
                 widening_block<32>, residual_block<32, 1>, residual_block<32, 1>, widening_block<64>, residual_block<64, 1>,
                 residual_block<64, 1>, global_average_pool2d, dense<10, softmax>> {};

/// A depthwise convolution, then a 1x1 one; both normalised.
template <int Channels, int Filters, int Stride>
using separable_conv =
    branch<normalized_conv<Channels, 3, stride<Stride>, channel_groups<Channels>>, normalized_conv<Filters, 1>>;

/// Like MobileNet (Howard et al. 2017), for CIFAR-10.
struct mobilenet : sequential<input<32, 32, 3>, normalized_conv<32, 3>, separable_conv<32, 64, 1>, separable_conv<64, 128, 2>,
                              separable_conv<128, 128, 1>, separable_conv<128, 256, 2>, separable_conv<256, 256, 1>,
                              global_average_pool2d, dense<10, softmax>> {};

/// A single convolution, on odd sizes.
template <int Size, int Channels, int Filters, int Stride, class Padding>
struct single_conv : sequential<input<Size, Size, Channels>, conv2d<Filters, 3, stride<Stride>, Padding, relu>,
                                global_average_pool2d, dense<10, softmax>> {};

}  // namespace strata::bench
