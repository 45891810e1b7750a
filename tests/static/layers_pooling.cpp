// max_pool2d, average_pool2d, global pooling: shapes, options, and what they refuse.
#include "layer_shapes.hpp"
#include <strata/initializers/constant.hpp>
#include <strata/layers/activations.hpp>
#include <strata/layers/average_pool2d.hpp>
#include <strata/layers/global_pool1d.hpp>
#include <strata/layers/max_pool2d.hpp>
using namespace strata;
using namespace strata::test;

static_assert(called<max_pool2d<2>>("max_pooling2d", "MaxPooling2D"));
static_assert(called<average_pool2d<2>>("average_pooling2d", "AveragePooling2D"));
static_assert(called<global_average_pool2d>("global_average_pooling2d", "GlobalAveragePooling2D"));
static_assert(called<global_max_pool2d>("global_max_pooling2d", "GlobalMaxPooling2D"));
static_assert(called<global_average_pool1d>("global_average_pooling1d", "GlobalAveragePooling1D"));
static_assert(called<global_max_pool1d>("global_max_pooling1d", "GlobalMaxPooling1D"));

static_assert(gives<max_pool2d<>>({28, 28, 3}, {14, 14, 3}));
static_assert(gives<max_pool2d<2>>({29, 27, 3}, {14, 13, 3}));
static_assert(gives<max_pool2d<3>>({28, 28, 3}, {9, 9, 3}));
static_assert(gives<max_pool2d<28>>({28, 28, 3}, {1, 1, 3}));
static_assert(gives<max_pool2d<3, stride<2>>>({28, 27, 3}, {13, 13, 3}));
static_assert(gives<max_pool2d<2, stride<1, 2>>>({28, 27, 3}, {27, 13, 3}));
static_assert(gives<max_pool2d<2, same_padding>>({29, 27, 3}, {15, 14, 3}));
static_assert(gives<max_pool2d<3, stride<2>, same_padding>>({28, 27, 3}, {14, 14, 3}));
static_assert(gives<max_pool2d<2, pool_size<1, 3>>>({28, 27, 3}, {28, 9, 3}));
static_assert(gives<max_pool2d<5, same_padding>>({3, 3, 1}, {1, 1, 1}));
static_assert(gives<average_pool2d<>>({29, 27, 3}, {14, 13, 3}));
static_assert(gives<average_pool2d<3, stride<2>, same_padding>>({28, 27, 3}, {14, 14, 3}));
static_assert(gives<global_average_pool2d>({7, 5, 64}, {64}) && gives<global_max_pool2d>({7, 5, 64}, {64}));
static_assert(gives<global_average_pool1d>({7, 5}, {5}) && gives<global_max_pool1d>({7, 5}, {5}));

static_assert(refuses<max_pool2d<2>>({784}, reasons::pooling_takes_height_width_channels));
static_assert(refuses<max_pool2d<2>>({28, 28}, reasons::pooling_takes_height_width_channels));
static_assert(refuses<average_pool2d<2>>({784}, reasons::pooling_takes_height_width_channels));
static_assert(refuses<global_average_pool2d>({784}, reasons::pooling_takes_height_width_channels));
static_assert(refuses<global_max_pool2d>({784}, reasons::pooling_takes_height_width_channels));
static_assert(refuses<global_average_pool1d>({7, 5, 64}, reasons::global_pooling_takes_steps_channels));
static_assert(refuses<global_max_pool1d>({5}, reasons::global_pooling_takes_steps_channels));
static_assert(refuses<max_pool2d<2>>({1, 28, 3}, reasons::pooling_window_is_larger_than_the_image_pool_less_often));
static_assert(refuses<average_pool2d<2>>({28, 1, 3}, reasons::pooling_window_is_larger_than_the_image_pool_less_often));
static_assert(refuses<max_pool2d<0>>({28, 28, 3}, reasons::pooling_needs_positive_settings));
static_assert(refuses<max_pool2d<2, pool_size<2, 0>>>({28, 28, 3}, reasons::pooling_needs_positive_settings));
static_assert(refuses<max_pool2d<2, stride<0>>>({28, 28, 3}, reasons::pooling_needs_positive_settings));
static_assert(refuses<average_pool2d<2, stride<2, -1>>>({28, 28, 3}, reasons::pooling_needs_positive_settings));

static_assert(misused<max_pool2d<2, relu>>(0, reasons::the_layer_takes_no_activation));
static_assert(misused<max_pool2d<2, stride<2>, no_bias>>(1, reasons::the_layer_does_not_know_this_option));
static_assert(misused<average_pool2d<2, kernel_initializer<ones>>>(0, reasons::the_layer_does_not_know_this_option));
static_assert(misused<average_pool2d<2, dilation<2>>>(0, reasons::the_layer_does_not_know_this_option));
static_assert(well_used<max_pool2d<2, stride<1>, same_padding>>());
