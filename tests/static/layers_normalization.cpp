// batch_norm, layer_norm and normalization: shapes, parameters and state, options, and what they refuse.
#include "layer_shapes.hpp"
#include <strata/layers/activations.hpp>
#include <strata/layers/batch_norm.hpp>
#include <strata/layers/layer_norm.hpp>
#include <strata/layers/normalization.hpp>
using namespace strata;
using namespace strata::core;
using namespace strata::test;

static_assert(called<batch_norm<>>("batch_normalization", "BatchNormalization"));
static_assert(called<layer_norm<>>("layer_normalization", "LayerNormalization"));
static_assert(gives<batch_norm<>>({28, 28, 3}, {28, 28, 3}) && gives<batch_norm<>>({7}, {7}));
static_assert(gives<layer_norm<>>({28, 28, 3}, {28, 28, 3}) && gives<layer_norm<>>({7}, {7}));
static_assert(info_of<detail::at_t<0, operations_of<batch_norm<>>>>.traits.whole_batch &&
              !info_of<detail::at_t<0, operations_of<layer_norm<>>>>.traits.whole_batch);

static_assert(std::is_same_v<operations_of<batch_norm<>>, operations_of<batch_norm<epsilon<0.001_r>, momentum<0.99_r>>>>);
static_assert(!std::is_same_v<operations_of<batch_norm<>>, operations_of<batch_norm<momentum<0.9_r>>>>);
static_assert(std::is_same_v<operations_of<layer_norm<>>, operations_of<layer_norm<epsilon<1e-3_r>>>>);

static_assert(parameter_count<batch_norm<>>({5, 5, 3}) == 4);
static_assert(is(parameter_of<batch_norm<>>({5, 5, 3}, 0), "gamma", {3}, "ones"));
static_assert(is(parameter_of<batch_norm<>>({5, 5, 3}, 1), "beta", {3}, "zeros"));
static_assert(is(parameter_of<batch_norm<>>({5, 5, 3}, 2), "moving_mean", {3}, "zeros", false));
static_assert(is(parameter_of<batch_norm<>>({5, 5, 3}, 3), "moving_variance", {3}, "ones", false));
static_assert(parameter_count<batch_norm<no_scale>>({5, 5, 3}) == 3);
static_assert(is(parameter_of<batch_norm<no_scale>>({5, 5, 3}, 0), "beta", {3}, "zeros"));
static_assert(is(parameter_of<batch_norm<no_center>>({5, 5, 3}, 0), "gamma", {3}, "ones"));
static_assert(is(parameter_of<batch_norm<no_center>>({5, 5, 3}, 1), "moving_mean", {3}, "zeros", false));
static_assert(parameter_count<batch_norm<no_center, no_scale>>({5, 5, 3}) == 2);
static_assert(parameter_count<layer_norm<>>({5, 5, 3}) == 2 && parameter_count<layer_norm<no_scale, no_center>>({5, 5, 3}) == 0);
static_assert(is(parameter_of<layer_norm<>>({5, 5, 3}, 0), "gamma", {3}, "ones"));
static_assert(is(parameter_of<layer_norm<no_scale>>({5, 5, 3}, 0), "beta", {3}, "zeros"));

using tuned =
    batch_norm<gamma_initializer<zeros>, beta_initializer<ones>, gamma_regularizer<l2<0.5_r>>, beta_regularizer<l1<0.25_r>>>;
static_assert(well_used<tuned>());
static_assert(is(parameter_of<tuned>({3}, 0), "gamma", {3}, "zeros") && is(parameter_of<tuned>({3}, 1), "beta", {3}, "ones"));
static_assert(is(parameter_of<tuned>({3}, 2), "moving_mean", {3}, "zeros", false));
static_assert(parameter_of<tuned>({3}, 0).regularizer.l2 == 0.5 && parameter_of<tuned>({3}, 1).regularizer.l1 == 0.25);
static_assert(parameter_of<tuned>({3}, 2).regularizer.empty());

static_assert(refuses<batch_norm<epsilon<0_r>>>({3}, reasons::normalization_epsilon_must_be_positive_and_finite_as_float));
static_assert(refuses<batch_norm<epsilon<1e39_r>>>({3}, reasons::normalization_epsilon_must_be_positive_and_finite_as_float));
static_assert(refuses<layer_norm<epsilon<-decimal(1)>>>({3},
                                                        reasons::normalization_epsilon_must_be_positive_and_finite_as_float));
static_assert(refuses<layer_norm<epsilon<1e-40_r>>>({3}, reasons::normalization_epsilon_must_be_positive_and_finite_as_float));
static_assert(refuses<batch_norm<momentum<1_r>>>({3}, reasons::batch_norm_momentum_must_be_below_1));
static_assert(refuses<batch_norm<momentum<-decimal(1)>>>({3}, reasons::batch_norm_momentum_must_be_below_1));
static_assert(refuses<batch_norm<>>({}, reasons::normalization_takes_at_least_one_extent));
static_assert(refuses<layer_norm<>>({}, reasons::normalization_takes_at_least_one_extent));

static_assert(misused<batch_norm<relu>>(0, reasons::the_layer_takes_no_activation));
static_assert(misused<batch_norm<no_scale, no_bias>>(1, reasons::the_layer_does_not_know_this_option));
static_assert(misused<batch_norm<kernel_initializer<ones>>>(0, reasons::the_layer_does_not_know_this_option));
static_assert(misused<layer_norm<momentum<0.9_r>>>(0, reasons::the_layer_does_not_know_this_option));
static_assert(well_used<layer_norm<no_center, epsilon<1e-5_r>>>());

static_assert(called<normalization>("normalization", "Normalization"));
static_assert(gives<normalization>({28, 28, 3}, {28, 28, 3}) && gives<normalization>({7}, {7}));
static_assert(parameter_count<normalization>({5, 5, 3}) == 2);
static_assert(is(parameter_of<normalization>({5, 5, 3}, 0), "mean", {3}, "zeros", false));
static_assert(is(parameter_of<normalization>({5, 5, 3}, 1), "variance", {3}, "ones", false));
static_assert(refuses<normalization>({}, reasons::normalization_takes_at_least_one_extent));
