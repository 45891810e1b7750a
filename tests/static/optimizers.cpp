// Optimizers are aggregates with Keras' names and defaults; rules take a number or a vector, and a reduced gradient only.
#include <strata/concepts/optimizer.hpp>
#include <strata/cpu/engine/weight_update.hpp>
#include <strata/optimizers/adadelta.hpp>
#include <strata/optimizers/adafactor.hpp>
#include <strata/optimizers/adagrad.hpp>
#include <strata/optimizers/adam.hpp>
#include <strata/optimizers/adamax.hpp>
#include <strata/optimizers/ftrl.hpp>
#include <strata/optimizers/lamb.hpp>
#include <strata/optimizers/lion.hpp>
#include <strata/optimizers/nadam.hpp>
#include <strata/optimizers/rmsprop.hpp>
#include <strata/optimizers/sgd.hpp>
#include <tools/reduced.hpp>
using namespace strata;
using namespace strata::core;

template <class O>
concept aggregate_optimizer = optimizer<O> && std::is_aggregate_v<O>;
static_assert(aggregate_optimizer<sgd> && aggregate_optimizer<rmsprop> && aggregate_optimizer<adam> &&
              aggregate_optimizer<adamw> && aggregate_optimizer<lamb>);
static_assert(aggregate_optimizer<nadam> && aggregate_optimizer<adamax> && aggregate_optimizer<adagrad> &&
              aggregate_optimizer<adadelta> && aggregate_optimizer<lion> && aggregate_optimizer<ftrl> &&
              aggregate_optimizer<adafactor>);
static_assert(norm_optimizer<lamb> && norm_optimizer<adafactor> && !norm_optimizer<adam>);

using wide = simd::vec<float>;
template <template <class> class Rule, int Slots>
concept rule_of = optimizer_rule<Rule<float>, float> && optimizer_rule<Rule<float>, wide> &&
                  optimizer_rule<Rule<double>, double> && Rule<float>::slots == Slots;
static_assert(rule_of<sgd_rule, 0> && rule_of<sgd_momentum_rule, 1> && rule_of<sgd_nesterov_rule, 1>);
static_assert(rule_of<rmsprop_rule, 1> && rule_of<rmsprop_momentum_rule, 2>);
static_assert(rule_of<rmsprop_centered_rule, 2> && rule_of<rmsprop_centered_momentum_rule, 3>);
static_assert(rule_of<adam_rule, 2> && rule_of<adam_amsgrad_rule, 3>);
static_assert(rule_of<nadam_rule, 2> && rule_of<adamax_rule, 2> && rule_of<adagrad_rule, 1> && rule_of<adadelta_rule, 2>);
static_assert(rule_of<lion_rule, 1> && rule_of<ftrl_rule, 2> && rule_of<ftrl_power_rule, 2>);
static_assert(rule_of<lamb_rule, 2> && parameterwise_rule<lamb_rule<float>, wide> && !elementwise_rule<lamb_rule<float>, wide>);
static_assert(elementwise_rule<adam_rule<float>, wide> && !parameterwise_rule<adam_rule<float>, wide>);
static_assert(rule_of<adafactor_rule, 1> && factored_rule<adafactor_rule<float>, wide>);
static_assert(!parameterwise_rule<adafactor_rule<float>, wide> && !elementwise_rule<adafactor_rule<float>, wide> &&
              !factored_rule<lamb_rule<float>, wide> && !factored_rule<adam_rule<float>, wide>);

// A gradient that has not been reduced cannot be passed to a rule, nor converted.
static_assert(std::is_invocable_v<sgd_rule<float>, float&, reduced_gradient<float>>);
static_assert(!std::is_invocable_v<sgd_rule<float>, float&, local_gradient<float>>);
static_assert(!std::is_invocable_v<sgd_rule<float>, float&, float>);
static_assert(!std::is_convertible_v<local_gradient<float>, reduced_gradient<float>>);
static_assert(!std::is_constructible_v<reduced_gradient<float>, float>);
static_assert(!std::is_constructible_v<reduced_gradient<float>, local_gradient<float>>);
static_assert(!std::is_default_constructible_v<reduced_gradient<float>>);
static_assert(!std::is_aggregate_v<reduced_gradient<float>>);

// Reduction, clipping and plain descent by hand, as constants.
constexpr auto mean = reduced(local_gradient<double>{12}, 4);
static_assert(mean.value() == 3);
static_assert(clip_by_value(mean, 2.).value() == 2 && clip_by_value(mean, 4.).value() == 3);
static_assert(clip_by_value(reduced(local_gradient<double>{-12}, 4), 2.).value() == -2);
static_assert(clip_by_factor(mean, 0.5).value() == 1.5);
constexpr double after(auto rule, auto... slot) {
  double w = 1;
  rule(w, mean, slot...);
  return w;
}
static_assert(after(sgd_rule<double>{0.25}) == 0.25);
static_assert(after(lion_rule<double>{0.25, 0.5, 0.5, 0.5, 0.5}, 0.) == 0.75);
static_assert(after(lion_rule<double>{0.25, 0.5, 0.5, 0.5, 0.5}, -4.) == 1.25);

// The ranges that a layout trains.
constexpr parameter state{"moving_mean", {8}, nullptr, false}, kernel{"kernel", {3, 9}, nullptr},
    bias{"bias", {9}, nullptr, true, {0.5, 0}};
constexpr auto trained = trained_ranges(parameter_layout<3>{{{kernel, 0}, {state, 48}, {bias, 32}}, 48});
static_assert(trained.count == 2);
static_assert(trained.ranges[0].begin == 0 && trained.ranges[0].end == 32 && trained.ranges[0].elements == 27);
static_assert(trained.ranges[0].regularizer.empty());
static_assert(trained.ranges[1].begin == 32 && trained.ranges[1].end == 48 && trained.ranges[1].regularizer.l1 == 0.5);

// By default, leaf gradients are not those of a whole batch.
static_assert(!leaf_gradients<float, host_device>{}.is_whole_batch());
static_assert(leaf_gradients<float, host_device>{.begin = 0, .end = 2, .leaves = 2}.is_whole_batch());
