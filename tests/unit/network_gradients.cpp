// Whole networks against central differences, on the plain loops and on the fast kernels.
#include <strata/strata.hpp>

#include "gradient_check.hpp"

using namespace strata;
using namespace strata::core;
using namespace strata::test;

namespace {
using crossentropy = sparse_categorical_crossentropy<>;
using pooled = sequential<input<10, 8, 3>, conv2d<5, 3, relu>, max_pool2d<2>,
                          conv2d<4, 2, same_padding, stride<2>, tanh_activation>, flatten, dense<7, sigmoid>, dense<5, softmax>>;
using branched =
    sequential<input<6, 7, 2>, conv2d<4, 3, same_padding, no_bias>, batch_norm<>, activation<relu>,
               residual<conv2d<4, 3, same_padding, relu>, batch_norm<no_scale>>,
               concat<branch<average_pool2d<2>>, branch<max_pool2d<2>, add<branch<conv2d<3, 1>>, branch<conv2d<3, 1, elu<>>>>>>,
               layer_norm<>, global_average_pool2d, dense<6>, dropout<0.25_r>, dense<3, softmax>>;
using regression =
    sequential<input<4, 5, 2>, zero_padding2d<1>, conv2d<6, 3, channel_groups<2>, gelu>, reshape<20, 6>, flatten, dense<3>>;
using separated =
    sequential<input<6, 5, 3>, depthwise_conv2d<3, depth_multiplier<2>, same_padding, stride<2>, hard_silu>,
               separable_conv2d<4, 2, depthwise_regularizer<l2<0.05_r>>, pointwise_regularizer<l1<0.02_r>>, tanh_activation>,
               activation<hard_sigmoid>, flatten, dense<3, softmax>>;
using joined = sequential<input<6>, multiply<branch<dense<5, sigmoid>>, branch<dense<5>>>,
                          subtract<branch<dense<4>>, branch<average<branch<dense<4>>, branch<dense<4>>, branch<dense<4, relu>>>>>,
                          residual<maximum<branch<dense<4>>, branch<>>, activation<tanh_activation>>, dense<3, softmax>>;
using penalised = sequential<input<9>, dense<6, relu, kernel_regularizer<l2<0.05_r>>, bias_regularizer<l1<0.02_r>>>,
                             dense<2, kernel_regularizer<l1_l2<>>>>;
// Columns of an activation; the branches read some of them twice and others never.
using sliced = sequential<input<6>, dense<7>, concat<branch<columns<0, 3>, dense<2, tanh_activation>>, branch<columns<2, 4>>>,
                          dense<3, softmax>>;
}  // namespace

TEST_CASE_TEMPLATE("gradients of whole networks", Backend, reference, cpu) {
  check_gradients<pooled, crossentropy, Backend>(5);
  check_gradients<branched, crossentropy, Backend>(5);
  check_gradients<separated, crossentropy, Backend>(4);
  check_gradients<joined, crossentropy, Backend>(5);
  check_gradients<sliced, crossentropy, Backend>(5);
  check_gradients<regression, mean_squared_error, Backend>(3);
  check_gradients<penalised, huber<>, Backend>(4);
}
