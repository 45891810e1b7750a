// depthwise_conv2d and separable_conv2d: shapes, parameters, options, and what they refuse.
#include "layer_shapes.hpp"
#include <strata/initializers/he.hpp>
#include <strata/layers/depthwise_conv2d.hpp>
#include <strata/layers/separable_conv2d.hpp>
#include <string_view>
using namespace strata;
using namespace strata::core;
using namespace strata::test;

static_assert(called<depthwise_conv2d<3>>("depthwise_conv2d", "DepthwiseConv2D"));
static_assert(gives<depthwise_conv2d<3>>({28, 27, 4}, {26, 25, 4}));
static_assert(gives<depthwise_conv2d<3, depth_multiplier<2>, relu>>({28, 27, 4}, {26, 25, 8}));
static_assert(gives<depthwise_conv2d<3, stride<2>, same_padding>>({28, 27, 4}, {14, 14, 4}));
static_assert(gives<depthwise_conv2d<3, dilation<2>>>({28, 27, 4}, {24, 23, 4}));
static_assert(gives<depthwise_conv2d<3, kernel_size<1, 5>>>({28, 27, 4}, {28, 23, 4}));

static_assert(called<separable_conv2d<8, 3>>("separable_conv2d", "SeparableConv2D"));

namespace {
template <class Layer, int Operation = 0>
using operation_of = detail::at_t<Operation, operations_of<Layer>>;

using twice =
    operation_of<depthwise_conv2d<3, depth_multiplier<2>, depthwise_initializer<he_normal>, depthwise_regularizer<l2<>>>>;
static_assert(twice::parameters({9, 9, 4})[0].extents == shape{3, 3, 4, 2} &&
              twice::parameters({9, 9, 4})[1].extents == shape{8});
static_assert(operation_of<depthwise_conv2d<3, no_bias>>::parameters({9, 9, 4}).size() == 1);
// One product for each weight and each place of the output.
static_assert(twice::multiply_adds({9, 9, 4}) == 7 * 7 * 9 * 8);
// It is computed as a convolution with as many groups as channels.
static_assert(std::is_same_v<twice::computed_as<shape{9, 9, 4}>,
                             convolution<conv_settings{.filters = 8, .kernel_height = 3, .kernel_width = 3, .groups = 4}>>);

using first = operation_of<separable_conv2d<8, 3, depth_multiplier<2>, stride<2>, relu>>;
using second = operation_of<separable_conv2d<8, 3, depth_multiplier<2>, stride<2>, relu>, 1>;
static_assert(first::output_shape({9, 9, 4}).value == shape{4, 4, 8} && second::output_shape({4, 4, 8}).value == shape{4, 4, 8});
static_assert(std::is_same_v<operation_of<separable_conv2d<8, 3, relu>, 2>, relu>);
static_assert(first::parameters({9, 9, 4}).size() == 1 && second::parameters({4, 4, 8}).size() == 2);
static_assert(second::parameters({4, 4, 8})[0].extents == shape{1, 1, 8, 8});
static_assert(second::parameters({4, 4, 8})[0].name == std::string_view("pointwise_kernel"));
static_assert(operation_of<separable_conv2d<8, 3, no_bias>, 1>::parameters({4, 4, 8}).size() == 1);
}  // namespace

static_assert(refuses<depthwise_conv2d<3>>({784}, reasons::conv2d_takes_height_width_channels));
static_assert(refuses<depthwise_conv2d<3>>({2, 28, 1}, reasons::conv2d_kernel_is_larger_than_the_image_use_same_padding));
static_assert(refuses<depthwise_conv2d<0>>({28, 28, 1}, reasons::depthwise_conv2d_needs_positive_settings));
static_assert(refuses<depthwise_conv2d<3, depth_multiplier<0>>>({28, 28, 1}, reasons::depthwise_conv2d_needs_positive_settings));
static_assert(refuses<depthwise_conv2d<3, stride<2>, dilation<2>>>({28, 28, 1},
                                                                   reasons::conv2d_takes_stride_or_dilation_not_both));
static_assert(depthwise_conv2d<3, channel_groups<2>>::misused_option == 0);
static_assert(depthwise_conv2d<3, kernel_initializer<he_normal>>::misused_option == 0);
static_assert(separable_conv2d<8, 3, pointwise_initializer<he_normal>, pointwise_regularizer<l2<>>>::misused_option == -1);
