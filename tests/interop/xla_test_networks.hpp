// Networks that together have most layers, for the tests of XLA.
#pragma once
#include <strata/strata.hpp>

namespace xla_networks {

using namespace strata;

using images =
    sequential<input<12, 12, 3>, normalization, zero_padding2d<1>, conv2d<4, 3, relu, kernel_regularizer<l2<0.01_r>>>,
               batch_norm<>, max_pool2d<2>, residual<conv2d<4, 3, same_padding, gelu>, batch_norm<no_scale>>, dropout<0.3_r>,
               concat<branch<conv2d<2, 1, silu>>, branch<average_pool2d<3, stride<1>, same_padding>>, branch<>>, up_sampling2d<2>,
               conv2d_transpose<3, 2, stride<2>>, multiply<branch<>, branch<conv2d<3, 1, sigmoid>>>, layer_norm<>,
               maximum<branch<>, branch<conv2d<3, 3, same_padding, channel_groups<3>>>>, global_average_pool2d,
               dense<8, elu<>, bias_regularizer<l1<0.01_r>>>, reshape<4, 2>, flatten, dense<5, softmax>>;
using words = sequential<input<6>, embedding<7, 4>, dropout<0.2_r>, layer_norm<>, global_max_pool1d, dense<1, sigmoid>>;

}  // namespace xla_networks
