// The multiply-adds of a network, counted by hand.
#include <strata/strata.hpp>
#include <strata/synchronous/synchronous.hpp>

using namespace strata;
using namespace strata::core;

static_assert(multiply_adds_of<sequential<input<5>, dense<7>, dense<3>>> == 5 * 7 + 7 * 3);
static_assert(multiply_adds_of<sequential<input<28, 28, 1>, conv2d<32, 3, relu>, max_pool2d<2>, flatten, dense<10>>> ==
              26 * 26 * 9 * 32 + 13 * 13 * 32 * 10);
static_assert(multiply_adds_of<sequential<input<8, 8, 4>, conv2d<8, 3, channel_groups<2>, stride<2>, same_padding, no_bias>>> ==
              4 * 4 * 9 * 2 * 8);
static_assert(multiply_adds_of<sequential<input<7, 7, 4>, conv2d_transpose<8, 3, stride<2>, same_padding>>> == 7 * 7 * 9 * 4 * 8);
static_assert(multiply_adds_of<sequential<input<8>, batch_norm<>>> == 0);
static_assert(multiply_adds_of<sequential<input<8>, embedding<1000, 16>, flatten, dense<10>>> == 8 * 16 * 10);

// The number of leaves: a few samples are not worth a gradient of their own.
static_assert(default_leaves(1, true) == 1 && default_leaves(16, true) == 2 && default_leaves(64, true) == 2);
static_assert(default_leaves(128, true) == 4 && default_leaves(128, false) == 2 && default_leaves(1'000'000, false) == 16);
