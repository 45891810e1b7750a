// The arguments of a trainer besides network, optimizer and loss, in any order, and the diagnostics for others.
#pragma once
#include <concepts>
#include <cstdint>
#include <span>
#include <strata/base/meta.hpp>
#include <strata/base/precision.hpp>
#include <strata/base/reason.hpp>
#include <strata/concepts/metric.hpp>
#include <strata/concepts/strategy.hpp>
#include <strata/distribute/one_device.hpp>
#include <strata/train/argument_verdict.hpp>
#include <strata/train/fit_verdict.hpp>
#include <tuple>
#include <type_traits>

namespace strata {

namespace reasons {
inline constexpr reason a_trainer_takes_one_strategy_one_precision_and_one_seed{
    "a trainer has one strategy, one precision and one seed, and several metrics"};
inline constexpr reason a_trainer_takes_metrics_a_strategy_a_precision_and_a_seed{
    "after network, optimizer and loss come metrics, a strategy, a precision and a seed"};
inline constexpr reason options_and_callbacks_go_to_fit_after_the_data{
    "options such as epochs and steps_per_execution, and callbacks, go to fit, after the data: model.fit(data, epochs(2))"};
inline constexpr reason a_backend_is_a_template_argument_write_one_device_of_fits_in_8_MiB_in_angle_brackets;
inline constexpr reason a_device_belongs_to_a_strategy_write_one_device_of_gpu_0_or_mirrored_of_gpus{
    "a device is an argument of a strategy: one_device{gpu(0)}, mirrored{gpus()}, mirrored{cpus(4)}"};
inline constexpr reason it_is_no_metric_which_has_measure_and_no_strategy_which_has_executor{
    "a metric has measure(prediction, truth), which returns a number; a strategy has executor<Program>"};
}  // namespace reasons

namespace core {
/// An argument of a trainer besides network, optimizer and loss.
template <class E>
concept trainer_extra = metric<E> || strategy<E> || precision_policy<E> || std::same_as<E, seed>;
}  // namespace core

namespace detail {

template <class T>
struct is_metric : std::bool_constant<metric<T>> {};
template <class T>
struct is_strategy : std::bool_constant<strategy<T>> {};
template <class T>
struct is_precision : std::bool_constant<precision_policy<T>> {};

/// The extra arguments of a trainer by kind, with the defaults of those left out.
template <class... Extra>
struct sorted_extras {
  using metrics = filter_t<is_metric, Extra...>;
  using strategy = at_t<0, join_t<filter_t<is_strategy, Extra...>, type_list<one_device<>>>>;
  using precision = at_t<0, join_t<filter_t<is_precision, Extra...>, type_list<precision::f32>>>;
};

/// The argument of type T, or `otherwise`.
template <class T, class... Args>
constexpr T pick(T otherwise, const Args&... args) {
  if constexpr ((std::same_as<T, Args> || ...))
    return std::get<const T&>(std::tie(args...));
  else
    return otherwise;
}
/// The argument of type T, or a default-constructed one.
template <class T, class... Args>
constexpr T pick_or_make(const Args&... args) {
  if constexpr ((std::same_as<T, Args> || ...))
    return std::get<const T&>(std::tie(args...));
  else
    return T{};
}

template <class T>
struct is_no_trainer_extra : std::bool_constant<!trainer_extra<T>> {};

template <class Alike>
struct second_of {
  using type = type_list<>;
};
template <class First, class Second, class... More>
struct second_of<type_list<First, Second, More...>> {
  using type = type_list<Second>;
};
template <class T>
struct is_seed : std::is_same<T, seed> {};
/// The second argument of each kind of which a trainer takes only one: strategy, precision, seed.
template <class... Extra>
using repeated_extras =
    join_t<typename second_of<filter_t<is_strategy, Extra...>>::type, typename second_of<filter_t<is_precision, Extra...>>::type,
           typename second_of<filter_t<is_seed, Extra...>>::type>;

template <class E>
auto sentence_on_extra() {
  using refused = type_list<E>;
  if constexpr (fit_option<E>)
    return argument_verdict<refused, reasons::options_and_callbacks_go_to_fit_after_the_data>{};
  else if constexpr (has_executor<E>)
    return lacks<E, a_strategy_is_copyable_and_has_a_name>{};
  else if constexpr (has_measure<E, std::int32_t> || has_measure<E, std::span<const double>>)
    return lacks<E, reasons::metrics_have_a_name>{};
  else if constexpr (names_backend<E>)
    return argument_verdict<refused,
                            reasons::a_backend_is_a_template_argument_write_one_device_of_fits_in_8_MiB_in_angle_brackets>{};
  else if constexpr (requires { typename E::backend; })  // a device or a list of devices
    return argument_verdict<refused, reasons::a_device_belongs_to_a_strategy_write_one_device_of_gpu_0_or_mirrored_of_gpus>{};
  else if constexpr (named<E> && std::is_empty_v<E> && !layer<E>)  // probably a metric, or a strategy without options
    return lacks<E, reasons::it_is_no_metric_which_has_measure_and_no_strategy_which_has_executor>{};
  else
    return argument_verdict<refused, reasons::a_trainer_takes_metrics_a_strategy_a_precision_and_a_seed>{};
}
/// The diagnostic about the first refused argument of a trainer.
template <class Refused>
struct extra_verdict : no_complaint {};
template <class First, class... More>
struct extra_verdict<type_list<First, More...>> : decltype(sentence_on_extra<First>()) {};
template <class... Extra>
using extras_verdict = first_complaint<
    typename extra_verdict<filter_t<is_no_trainer_extra, Extra...>>::type,
    typename argument_verdict<repeated_extras<Extra...>, reasons::a_trainer_takes_one_strategy_one_precision_and_one_seed>::type>;

}  // namespace detail

}  // namespace strata
