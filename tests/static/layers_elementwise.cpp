// Activations, dropout, flatten, reshape, zero padding and joins: shapes, names, and what they refuse.
#include "layer_shapes.hpp"
#include <cmath>  // has functions named like some activations
#include <strata/layers/activation.hpp>
#include <strata/layers/add.hpp>
#include <strata/layers/average.hpp>
#include <strata/layers/concat.hpp>
#include <strata/layers/cropping2d.hpp>
#include <strata/layers/dense.hpp>
#include <strata/layers/dropout.hpp>
#include <strata/layers/flatten.hpp>
#include <strata/layers/maximum.hpp>
#include <strata/layers/multiply.hpp>
#include <strata/layers/rescaling.hpp>
#include <strata/layers/reshape.hpp>
#include <strata/layers/residual.hpp>
#include <strata/layers/subtract.hpp>
#include <strata/layers/zero_padding2d.hpp>
#include <strata/network/sequential.hpp>
using namespace strata;
using namespace strata::core;
using namespace strata::test;

template <class... A>
constexpr bool keep_shapes() {
  return ((gives<A>({3, 4, 5}, {3, 4, 5}) && gives<A>({7}, {7}) && gives<activation<A>>({2, 3}, {2, 3}) &&
           activation_operation<A> && std::is_same_v<operations_of<dense<4, A>>, type_list<affine<dense_settings{4}>, A>>) &&
          ...);
}
static_assert(keep_shapes<relu, relu6, hard_sigmoid, hard_silu, leaky_relu<>, elu<>, selu, gelu, gelu_approximate, silu, sigmoid,
                          tanh_activation, softplus, softsign, softmax>());
static_assert(leaky_relu<>::slope == 0.2 && elu<>::alpha == 1);
static_assert(refuses<leaky_relu<-decimal(1)>>({3}, reasons::leaky_relu_slope_must_not_be_negative));
static_assert(refuses<elu<-decimal(1)>>({3}, reasons::elu_alpha_must_not_be_negative));
static_assert(called<activation<relu>>("activation", "Activation"));
static_assert(refuses<activation<dense<3>>>({3}, reasons::activation_takes_an_activation));
static_assert(refuses<activation<int>>({3}, reasons::activation_takes_an_activation));
static_assert(!activation_operation<flatten> && !activation_operation<dense<3>> && !activation_operation<int>);
static_assert(gives<rescaling<2_r, -1_r>>({3, 4, 5}, {3, 4, 5}) && gives<rescaling<0.5_r>>({7}, {7}));
static_assert(called<rescaling<2_r>>("rescaling", "Rescaling"));
static_assert(gives<activation<linear>>({2, 3}, {2, 3}));
static_assert(info_of<linear>.traits.is_view && !info_of<relu>.traits.is_view);
static_assert(std::is_same_v<operations_of<dense<4, linear>>, operations_of<dense<4>>>);  // no operation is added
static_assert(well_used<dense<4, linear>>() && misused<dense<4, linear, relu>>(1, reasons::a_layer_takes_one_activation));

static_assert(called<dropout<0.5_r>>("dropout", "Dropout"));
static_assert(gives<dropout<0.5_r>>({3, 4, 5}, {3, 4, 5}) && gives<dropout<0_r>>({3}, {3}));
static_assert(gives<dropout<0.5_r, shape{1, 4, 1}>>({3, 4, 5}, {3, 4, 5}) && gives<dropout<0_r, shape{1}>>({3}, {3}));
static_assert(refuses<dropout<0_r, shape{1, 1}>>({3}, reasons::the_noise_shape_of_dropout_has_each_extent_of_the_input_or_1));
static_assert(refuses<dropout<0_r, shape{1}>>({1, 3}, reasons::the_noise_shape_of_dropout_has_each_extent_of_the_input_or_1));
static_assert(refuses<dropout<0_r, shape{2}>>({3}, reasons::the_noise_shape_of_dropout_has_each_extent_of_the_input_or_1));
static_assert(refuses<dropout<1_r>>({3}, reasons::dropout_rate_must_be_below_1));
static_assert(refuses<dropout<50_r>>({3}, reasons::dropout_rate_must_be_below_1));
static_assert(refuses<dropout<decimal(-1, -1)>>({3}, reasons::dropout_rate_must_be_below_1));

static_assert(called<flatten>("flatten", "Flatten") && info_of<flatten>.traits.is_view);
static_assert(gives<flatten>({3, 4, 5}, {60}) && gives<flatten>({7}, {7}));

static_assert(called<reshape<4>>("reshape", "Reshape") && info_of<reshape<4>>.traits.is_view);
static_assert(gives<reshape<5, 4, 3>>({3, 4, 5}, {5, 4, 3}) && gives<reshape<60>>({3, 4, 5}, {60}) &&
              gives<reshape<1, 1, 7, 1>>({7}, {1, 1, 7, 1}));
static_assert(gives<reshape<-1>>({3, 4, 5}, {60}) && gives<reshape<6, -1>>({3, 4, 5}, {6, 10}) &&
              gives<reshape<-1, 60>>({3, 4, 5}, {1, 60}));
static_assert(refuses<reshape<61>>({3, 4, 5}, reasons::reshape_must_keep_the_number_of_elements));
static_assert(refuses<reshape<7, -1>>({3, 4, 5}, reasons::reshape_must_keep_the_number_of_elements));
static_assert(refuses<reshape<-1, 120>>({3, 4, 5}, reasons::reshape_must_keep_the_number_of_elements));
static_assert(refuses<reshape<0, 60>>({3, 4, 5}, reasons::reshape_extents_must_be_positive));
static_assert(refuses<reshape<-1, -1>>({3, 4, 5}, reasons::reshape_extents_must_be_positive));
static_assert(refuses<reshape<-2, 30>>({3, 4, 5}, reasons::reshape_extents_must_be_positive));
static_assert(refuses<reshape<>>({3, 4, 5}, reasons::reshape_takes_one_to_four_extents));
static_assert(refuses<reshape<3, 2, 2, 5, 1>>({3, 4, 5}, reasons::reshape_takes_one_to_four_extents));

static_assert(called<zero_padding2d<1>>("zero_padding2d", "ZeroPadding2D"));
static_assert(gives<zero_padding2d<1>>({3, 4, 5}, {5, 6, 5}) && gives<zero_padding2d<0>>({3, 4, 5}, {3, 4, 5}));
static_assert(gives<zero_padding2d<1, 2>>({3, 4, 5}, {5, 8, 5}));
static_assert(gives<zero_padding2d<1, 2, 3, 4>>({3, 4, 5}, {6, 11, 5}));
static_assert(std::is_same_v<operations_of<zero_padding2d<1, 1>>, operations_of<zero_padding2d<1>>>);
static_assert(refuses<zero_padding2d<1>>({3, 4}, reasons::zero_padding2d_takes_height_width_channels));
static_assert(refuses<zero_padding2d<-1>>({3, 4, 5}, reasons::zero_padding2d_must_not_be_negative));
static_assert(refuses<zero_padding2d<>>({3, 4, 5}, reasons::zero_padding2d_takes_one_two_or_four_numbers));
static_assert(refuses<zero_padding2d<1, 2, 3>>({3, 4, 5}, reasons::zero_padding2d_takes_one_two_or_four_numbers));

static_assert(called<cropping2d<1>>("cropping2d", "Cropping2D"));
static_assert(gives<cropping2d<1>>({3, 4, 5}, {1, 2, 5}) && gives<cropping2d<0>>({3, 4, 5}, {3, 4, 5}));
static_assert(gives<cropping2d<0, 1>>({3, 4, 5}, {3, 2, 5}) && gives<cropping2d<1, 0, 0, 3>>({3, 4, 5}, {2, 1, 5}));
static_assert(refuses<cropping2d<1>>({3, 4}, reasons::cropping2d_takes_height_width_channels));
static_assert(refuses<cropping2d<-1>>({3, 4, 5}, reasons::cropping2d_must_not_be_negative));
static_assert(refuses<cropping2d<0, 2>>({3, 4, 5}, reasons::cropping2d_must_leave_a_pixel));
static_assert(refuses<cropping2d<1, 2, 3>>({3, 4, 5}, reasons::cropping2d_takes_one_two_or_four_numbers));

// Joins take several shapes.
template <class Join, class... Shapes>
constexpr expected_shape joined(Shapes... each) {
  const shape in[sizeof...(Shapes) + 1] = {each..., shape{}};
  return info_of<Join>.output_shape(std::span<const shape>(in, sizeof...(Shapes)));
}
static_assert(joined<sum_of_branches>(shape{3, 4}, shape{3, 4}, shape{3, 4}).value == shape{3, 4});
static_assert(joined<sum_of_branches>(shape{3, 4}, shape{3, 4}, shape{4, 3}).why == &reasons::add_takes_branches_of_equal_shape);
static_assert(joined<sum_of_branches>(shape{3, 4}, shape{3, 4, 1}).why == &reasons::add_takes_branches_of_equal_shape);
static_assert(joined<sum_of_branches>().why == &reasons::a_join_needs_at_least_one_branch);
template <class Join, const reason& Unequal>
constexpr bool takes_equal_shapes() {
  return elementwise_join<Join> && joined<Join>(shape{3, 4}, shape{3, 4}).value == shape{3, 4} &&
         joined<Join>(shape{3, 4}, shape{4, 3}).why == &Unequal && joined<Join>(shape{3, 4}, shape{3, 4, 1}).why == &Unequal;
}
static_assert(takes_equal_shapes<sum_of_branches, reasons::add_takes_branches_of_equal_shape>());
static_assert(takes_equal_shapes<mean_of_branches, reasons::average_takes_branches_of_equal_shape>());
static_assert(takes_equal_shapes<largest_of_branches, reasons::maximum_takes_branches_of_equal_shape>());
static_assert(takes_equal_shapes<product_of_branches, reasons::multiply_takes_branches_of_equal_shape>());
static_assert(takes_equal_shapes<difference_of_branches, reasons::subtract_takes_branches_of_equal_shape>());
static_assert(joined<product_of_branches>(shape{5}).value == shape{5} && joined<largest_of_branches>(shape{5}).value == shape{5});
static_assert(joined<mean_of_branches>().why == &reasons::a_join_needs_at_least_one_branch);
static_assert(joined<difference_of_branches>(shape{5}).why == &reasons::subtract_takes_two_branches);
static_assert(joined<difference_of_branches>(shape{5}, shape{5}, shape{5}).why == &reasons::subtract_takes_two_branches);
struct complete_join : elementwise_join_base<reasons::add_takes_branches_of_equal_shape> {
  template <class T, class V, int N>
  static V value(const V (&)[N]);
  template <class T, class V, int N>
  static void gradients(const V (&)[N], const V&, V (&)[N]);
};
struct join_without_tag : complete_join {
  static constexpr bool is_elementwise_join = false;
};
struct join_without_value : complete_join {
  void value();
};
struct join_without_gradients : complete_join {
  void gradients();
};
struct join_of_another_value : complete_join {
  template <class T, class V, int N>
  static bool value(const V (&)[N]);
};
struct join_that_hides_what_it_reads : complete_join {
  void reads_input();
};
static_assert(elementwise_join<complete_join> && !elementwise_join<join_without_tag> && !elementwise_join<join_without_value>);
static_assert(!elementwise_join<join_without_gradients> && !elementwise_join<join_of_another_value>);
static_assert(!elementwise_join<join_that_hides_what_it_reads>);
static_assert(!elementwise_join<stack_of_branches> && !join_layer<relu> && join_layer<average<branch<>>>);
static_assert(joined<stack_of_branches>(shape{3, 4, 2}, shape{3, 4, 5}, shape{3, 4, 1}).value == shape{3, 4, 8});
static_assert(joined<stack_of_branches>(shape{3}, shape{5}).value == shape{8});
static_assert(joined<stack_of_branches>(shape{3, 4, 2}).value == shape{3, 4, 2});
static_assert(joined<stack_of_branches>(shape{3, 4, 2}, shape{3, 5, 2}).why ==
              &reasons::concat_takes_branches_that_differ_only_in_channels_use_same_padding);
static_assert(joined<stack_of_branches>(shape{3, 4, 2}, shape{3, 4}).why ==
              &reasons::concat_takes_branches_that_differ_only_in_channels_use_same_padding);
static_assert(joined<stack_of_branches>().why == &reasons::a_join_needs_at_least_one_branch);
static_assert(called<add<branch<>>>("add", "Add") && called<concat<branch<>>>("concatenate", "Concatenate"));
static_assert(called<average<branch<>>>("average", "Average") && called<maximum<branch<>>>("maximum", "Maximum"));
static_assert(called<multiply<branch<>>>("multiply", "Multiply") && called<subtract<branch<>>>("subtract", "Subtract"));
static_assert(std::is_same_v<residual<relu>::join, add<>::join> &&
              std::is_same_v<residual<relu>::branches, type_list<branch<relu>, branch<>>>);
// A sequential stands for its layers wherever a layer may stand; with an input it is a network.
using in_rows = sequential<input<8, 8, 4>, residual<sequential<relu, sequential<>>>,
                           concat<sequential<relu>, sequential<relu, relu>>, sequential<input<8, 8, 8>, relu, relu>>;
static_assert(in_rows::output_shape == shape{8, 8, 8} && tape_of<in_rows::items>.size == 9);
static_assert(!well_shaped<input<8, 8, 4>, sequential<input<8, 8, 8>, relu>>);
