// Every operation of the library has an emission in StableHLO.
#include <strata/optimizers/ema.hpp>
#include <strata/strata.hpp>
#include <strata/xla/emitter/emitter.hpp>

namespace {
using namespace strata;
using namespace strata::core;

template <class Operations>
constexpr bool all = false;
template <class... Operation>
constexpr bool all<type_list<Operation...>> = (stablehlo::detail::has_emission<Operation> && ...);
/// Whether all operations of these layers have an emission.
template <class... Layer>
constexpr bool emitted = (all<operations_of<Layer>> && ...);

static_assert(emitted<activation<linear>, activation<relu>, activation<relu6>, activation<leaky_relu<>>, activation<elu<>>,
                      activation<selu>, activation<gelu>, activation<gelu_approximate>, activation<silu>,
                      activation<hard_sigmoid>, activation<hard_silu>, activation<sigmoid>, activation<tanh_activation>,
                      activation<softplus>, activation<softsign>, activation<softmax>>);
static_assert(emitted<dense<4>, dense<4, no_bias, relu>, conv2d<4, 3>, conv2d<4, 3, channel_groups<2>, no_bias, gelu>,
                      conv2d_transpose<4, 3>, depthwise_conv2d<3>, separable_conv2d<4, 3>, embedding<10, 4>, columns<1, 2>>);
static_assert(
    emitted<max_pool2d<2>, average_pool2d<2>, global_average_pool1d, global_average_pool2d, global_max_pool1d, global_max_pool2d,
            zero_padding2d<1>, cropping2d<1>, up_sampling2d<2>, up_sampling2d<2, bilinear_interpolation>>);
static_assert(emitted<batch_norm<>, batch_norm<no_center, no_scale>, layer_norm<>, normalization, dropout<0.5_r>,
                      rescaling<2_r, 1_r>, flatten, reshape<-1>>);
static_assert(emitted<add<>, average<>, concat<>, maximum<>, multiply<>, subtract<>, residual<>>);
static_assert(stablehlo::detail::has_emission<detail::frozen_operation<batch_normalization<batch_norm_settings{}>>::type>);

template <class Loss>
constexpr bool loss_emitted = stablehlo::detail::complete<stablehlo::loss_emission<Loss>>;
/// Crossentropies are computed from the logits wherever the reference does so.
static_assert(loss_emitted<fused<softmax, sparse_categorical_crossentropy<>>>);
static_assert(loss_emitted<fused<softmax, categorical_crossentropy<>>>);
static_assert(loss_emitted<fused<softmax, categorical_crossentropy<label_smoothing<0.1_r>>>>);
static_assert(!loss_emitted<fused<softmax, categorical_crossentropy<from_logits>>>);
static_assert(loss_emitted<fused<sigmoid, binary_crossentropy<>>>);
static_assert(!loss_emitted<fused<sigmoid, binary_crossentropy<from_logits>>>);
static_assert(!loss_emitted<fused<sigmoid, mean_squared_error>>);

struct without_emission {
  static constexpr auto name = "without_emission";
  static constexpr expected_shape output_shape(shape in) { return in; }
};
static_assert(!stablehlo::detail::has_emission<without_emission>);
using program_without = program<sequential<input<4>, dense<3>, without_emission>, mean_squared_error, sgd, type_list<>>;
static_assert(stablehlo::detail::first_without_emission<program_without> == 2);

/// The rules of all optimizers can be traced, alone and under a moving average.
using stablehlo::traced;
static_assert(elementwise_rule<sgd_nesterov_rule<traced>, traced> && elementwise_rule<adam_amsgrad_rule<traced>, traced> &&
              elementwise_rule<rmsprop_centered_momentum_rule<traced>, traced> &&
              elementwise_rule<ftrl_power_rule<traced>, traced>);
static_assert(parameterwise_rule<lamb_rule<traced>, traced> && factored_rule<adafactor_rule<traced>, traced>);
static_assert(elementwise_rule<ema_rule<lion_rule<traced>, traced>, traced> &&
              parameterwise_rule<ema_rule<lamb_rule<traced>, traced>, traced> &&
              factored_rule<ema_rule<adafactor_rule<traced>, traced>, traced>);

}  // namespace
