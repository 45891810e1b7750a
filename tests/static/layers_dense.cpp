// dense: shapes, parameters, options, and what it refuses.
#include "layer_shapes.hpp"
#include <strata/initializers/he.hpp>
#include <strata/layers/conv2d.hpp>
#include <strata/layers/dense.hpp>
using namespace strata;
using namespace strata::core;
using namespace strata::test;

static_assert(called<dense<10>>("dense", "Dense"));
static_assert(gives<dense<10>>({784}, {10}));
static_assert(gives<dense<1>>({1}, {1}));
static_assert(gives<dense<10, softmax>>({784}, {10}));
static_assert(std::is_same_v<operations_of<dense<10, softmax, no_bias>>, operations_of<dense<10, no_bias, softmax>>>);
static_assert(std::is_same_v<operations_of<dense<3, relu>>, type_list<affine<dense_settings{3}>, relu>>);

static_assert(refuses<dense<10>>({28, 28, 1}, reasons::dense_takes_a_rank_1_shape_put_flatten_in_front));
static_assert(refuses<dense<10>>({20, 16}, reasons::dense_takes_a_rank_1_shape_put_global_average_pool1d_or_flatten_in_front));
static_assert(refuses<dense<0>>({784}, reasons::dense_needs_at_least_one_unit));
static_assert(refuses<dense<-1>>({784}, reasons::dense_needs_at_least_one_unit));

static_assert(parameter_count<dense<10>>({784}) == 2 && parameter_count<dense<10, no_bias>>({784}) == 1);
static_assert(is(parameter_of<dense<10>>({784}, 0), "kernel", {784, 10}, "glorot_uniform"));
static_assert(is(parameter_of<dense<10>>({784}, 1), "bias", {10}, "zeros"));
using tuned = dense<10, relu, kernel_initializer<he_normal>, bias_initializer<constant<0.1_r>>,
                    kernel_regularizer<l1_l2<0.5_r, 0.25_r>>, bias_regularizer<l2<>>>;
static_assert(well_used<tuned>());
static_assert(is(parameter_of<tuned>({784}, 0), "kernel", {784, 10}, "he_normal"));
static_assert(is(parameter_of<tuned>({784}, 1), "bias", {10}, "constant"));
static_assert(parameter_of<tuned>({784}, 0).regularizer.l1 == 0.5 && parameter_of<tuned>({784}, 0).regularizer.l2 == 0.25);
static_assert(parameter_of<tuned>({784}, 1).regularizer.l1 == 0 && parameter_of<tuned>({784}, 1).regularizer.l2 == 0.01);
static_assert(parameter_of<dense<10, kernel_regularizer<l1<>>>>({784}, 0).regularizer.l1 == 0.01);
static_assert(parameter_of<dense<10>>({784}, 0).regularizer.empty());

static_assert(misused<dense<10, stride<2>>>(0, reasons::the_layer_does_not_know_this_option));
static_assert(misused<dense<10, relu, same_padding>>(1, reasons::the_layer_does_not_know_this_option));
static_assert(misused<dense<10, relu, kernel_regularizer<l2<2e38_r>>>>(1,
                                                                       reasons::a_penalty_must_be_at_least_0_and_at_most_1e38));
static_assert(misused<dense<10, bias_regularizer<l1<-decimal(1)>>>>(0, reasons::a_penalty_must_be_at_least_0_and_at_most_1e38));
static_assert(well_used<dense<10, kernel_regularizer<l1_l2<1e38_r, 1e38_r>>>>());
static_assert(misused<dense<10, relu, softmax>>(1, reasons::a_layer_takes_one_activation));
static_assert(misused<dense<10, beta_initializer<ones>>>(0, reasons::the_layer_does_not_know_this_option));
static_assert(well_used<dense<10>>() && well_used<dense<10, no_bias, softmax>>());
