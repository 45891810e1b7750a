// What fit, evaluate and predict take besides the data, and the diagnostics for arguments that do not fit.
#pragma once
#include <concepts>
#include <strata/base/meta.hpp>
#include <strata/base/reason.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/concepts/callback.hpp>
#include <strata/train/argument_verdict.hpp>
#include <strata/train/arrays.hpp>
#include <strata/train/data_verdict.hpp>
#include <strata/train/fit_options.hpp>
#include <strata/train/progress.hpp>
#include <tuple>
#include <type_traits>

namespace strata {

namespace core {
// The words of the diagnostics. None is ever defined: the type name is the error message.
template <int Size>
struct samples_in_a_batch;
template <class Batch, class Into, class Why>
struct batch_cannot_be_cut;
}  // namespace core
template <int Count>
struct micro_batches;  // program/stages/timetable.hpp
namespace core {
template <int Groups, int MicroBatches>
struct groups_of_micro_batches;
}  // namespace core

namespace reasons {
inline constexpr reason the_number_of_micro_batches_divides_the_batch{"the number of micro-batches divides the size of a batch"};
inline constexpr reason the_number_of_groups_times_that_of_micro_batches_divides_the_batch{
    "the number of groups times the number of micro-batches of each divides the size of a batch"};
inline constexpr reason batch_size_and_shuffle_go_with_arrays_a_data_set_has_stages_batch_and_shuffle{
    "batch_size and shuffle are for arrays x and y; a data set is shuffled and batched by data::shuffle and data::batch"};
inline constexpr reason validation_split_goes_with_arrays_split_a_data_set_by_data_split_dataset{
    "validation_split is for arrays x and y; data::split_dataset divides a data set"};
inline constexpr reason sample_weight_goes_with_arrays_x_and_y{
    "sample_weight is for arrays x and y: fit(x, y, sample_weight(w)); a data set takes data::sample_weight(w) before batch"};
inline constexpr reason sample_weight_takes_a_vector_of_float_with_a_number_for_each_sample{
    "sample_weight takes a vector or span of float, a number for each sample"};
inline constexpr reason sample_weight_and_class_weight_exclude_each_other{
    "samples have weights of their own or those of their classes, not both: multiply them and give sample_weight"};
inline constexpr reason evaluate_takes_batch_size_sample_weight_and_callbacks{
    "evaluate(x, y) takes batch_size, sample_weight and callbacks, too"};
inline constexpr reason predict_takes_callbacks_after_the_data{"after the data, predict takes callbacks"};
inline constexpr reason validation_and_validation_split_exclude_each_other{
    "validation data are given by validation(...) or taken from x and y by validation_split, not both"};
inline constexpr reason fit_takes_options_and_callbacks{
    "fit takes epochs, steps_per_epoch, steps_per_execution, batch_size, shuffle, sample_weight, class_weight, validation, "
    "validation_split, "
    "validation_freq, validation_steps, verbosity and callbacks"};
inline constexpr reason validation_takes_x_and_y_or_batches{
    "validation takes arrays x and y, validation(x, y), or batches: validation(data | data::batch<64>)"};
inline constexpr reason fit_takes_options_and_callbacks_which_have_hooks_such_as_on_epoch_end{
    "fit takes options such as epochs(5), and callbacks; a callback has a hook such as on_epoch_end(training_state&)"};
inline constexpr reason a_callback_is_given_itself_without_an_ampersand{
    "fit takes a callback by reference: write stops, not &stops"};
inline constexpr reason the_hooks_of_a_callback_take_a_training_state{
    "each hook of a callback takes a training_state&, or that and a fitted_model&"};
inline constexpr reason the_hooks_of_fit_are_on_train_epoch_or_batch_and_begin_or_end{
    "the hooks of fit are on_train_begin, on_train_end, and the same of epoch and batch"};
inline constexpr reason the_member_adds_of_a_callback_is_public_and_a_text_or_a_range_of_texts{
    "the member `adds` of a callback is public, and a string or a range of strings: the names of the values that it sets"};
inline constexpr reason the_hooks_of_evaluate_and_predict_take_a_pass_state{
    "each on_test_ and on_predict_ hook of a callback takes a pass_state&, or that and a fitted_model&"};
inline constexpr reason session_callbacks_have_restore_after_step_after_epoch_and_after_training{
    "a session_callback has restore, after_step, after_epoch and after_training, each taking a training_session&"};
inline constexpr reason a_callback_that_changes_in_fit_cannot_be_const{
    "a callback whose hooks are not const, such as early_stopping, changes during fit: it cannot be const"};
}  // namespace reasons

namespace detail {
template <class T>
inline constexpr bool is_validation = false;
template <class... Parts>
inline constexpr bool is_validation<validation<Parts...>> = true;
template <class Option>
struct is_sample_weights : std::bool_constant<is_sample_weight<Option>> {};
template <class Option>
struct is_class_weight : std::is_same<Option, class_weight> {};
template <class>
inline constexpr bool has_numbers = false;
template <class W>
  requires(array_traits<W>::flat && array_traits<W>::valid)
inline constexpr bool has_numbers<sample_weight<W>> = true;
template <class Option>
struct is_sample_weight_without_numbers : std::bool_constant<is_sample_weight<Option> && !has_numbers<Option>> {};
}  // namespace detail

namespace core {
/// What fit takes besides the data: options and callbacks, in any order.
template <class O>
concept fit_option = std::same_as<O, epochs> || std::same_as<O, initial_epoch> || std::same_as<O, steps_per_epoch> ||
                     std::same_as<O, steps_per_execution> || std::same_as<O, batch_size> || std::same_as<O, shuffle> ||
                     std::same_as<O, verbosity> || std::same_as<O, validation_split> || std::same_as<O, validation_freq> ||
                     std::same_as<O, validation_steps> || detail::is_sample_weight<O> || std::same_as<O, class_weight> ||
                     detail::is_classes_at<O> || detail::is_validation<O> || callback<O> || session_callback<O>;
}  // namespace core

namespace detail {

template <class T>
struct is_no_fit_option : std::bool_constant<!fit_option<T> || hooks::misspelt<T> || hooks::misnames_values<T>> {};

/// Options that determine how arrays are cut into batches.
template <class T>
struct is_option_of_arrays : std::bool_constant<std::same_as<T, batch_size> || std::same_as<T, shuffle>> {};
template <class T>
struct is_validation_split : std::is_same<T, validation_split> {};
template <class T>
struct is_validation_data : std::bool_constant<is_validation<T>> {};
template <class Source>
inline constexpr bool is_arrays = false;
template <class X, class Y>
inline constexpr bool is_arrays<arrays<X, Y>> = true;
template <class... Columns>
inline constexpr bool is_arrays<given_columns<Columns...>> = true;

/// The diagnostic for an option that fit, evaluate or predict does not take; `Known` lists what it takes.
template <class Refused, const reason& Known>
struct option_verdict : argument_verdict<Refused, Known> {};
template <class First, class... More, const reason& Known>
struct option_verdict<type_list<First, More...>, Known> {
  static auto sentence() {
    using refused = type_list<First>;
    if constexpr (hooks::misspelt<First>)
      return argument_verdict<refused, reasons::the_hooks_of_fit_are_on_train_epoch_or_batch_and_begin_or_end>{};
    else if constexpr (callback<First> && hooks::misnames_values<First>)
      return argument_verdict<refused, reasons::the_member_adds_of_a_callback_is_public_and_a_text_or_a_range_of_texts>{};
    else if constexpr (hooks::any<First> && !hooks::of_fit::fit<First>)
      return argument_verdict<refused, reasons::the_hooks_of_a_callback_take_a_training_state>{};
    else if constexpr (hooks::any<First>)
      return argument_verdict<refused, reasons::the_hooks_of_evaluate_and_predict_take_a_pass_state>{};
    else if constexpr (hooks::names_session<First>)
      return lacks<First, reasons::session_callbacks_have_restore_after_step_after_epoch_and_after_training>{};
    else if constexpr (callback<std::remove_pointer_t<First>>)
      return argument_verdict<refused, reasons::a_callback_is_given_itself_without_an_ampersand>{};
    else
      return argument_verdict<refused, Known>{};
  }
  using type = typename decltype(sentence())::type;
};

/// Option: the type without its reference. True for a callback whose hooks cannot be called because it is const.
template <class Option>
struct is_const_but_changes
    : std::bool_constant<std::is_const_v<Option> && (session_callback<std::remove_const_t<Option>> ||
                                                     (callback<std::remove_const_t<Option>> && !callback<Option>))> {};

template <class... Options>
using constant_verdict = typename argument_verdict<filter_t<is_const_but_changes, std::remove_reference_t<Options>...>,
                                                   reasons::a_callback_that_changes_in_fit_cannot_be_const>::type;

template <class Refused>
inline constexpr const reason& known_to_fit = reasons::fit_takes_options_and_callbacks;
template <class First, class... More>
  requires std::is_class_v<First>
inline constexpr const reason& known_to_fit<type_list<First, More...>> =
    reasons::fit_takes_options_and_callbacks_which_have_hooks_such_as_on_epoch_end;

/// The first diagnostic for the arguments of fit.
template <class Program, class Source, class... Options>
struct fit_verdict {
  template <class Option>
  struct on_validation {
    using type = no_complaint;
  };
  template <class Validation>
  struct on_validation<validation<Validation>> : data_verdict<Program, std::remove_cvref_t<Validation>, true> {};
  template <class X>
    requires array_argument<const X&>
  struct on_validation<validation<X>> {
    using type = wrong_argument<validation<X>, because<reasons::validation_takes_x_and_y_or_batches>>;
  };
  template <class X, class Y, class W>
    requires(!std::is_void_v<Y>)
  struct on_validation<validation<X, Y, W>> : data_verdict<Program, arrays<X, Y>, true> {};
  template <class... Columns>
  struct on_validation<validation<std::tuple<Columns...>>> : data_verdict<Program, given_columns<Columns...>, true> {};
  template <template <class> class Is>
  using those = filter_t<Is, std::remove_cvref_t<Options>...>;
  template <template <class> class Is>
  using those_of_arrays = std::conditional_t<is_arrays<Source>, type_list<>, those<Is>>;
  template <template <class> class Is, template <class> class IsOther>
  using those_beside = std::conditional_t<std::is_same_v<those<IsOther>, type_list<>>, type_list<>, those<Is>>;

  using type = first_complaint<
      typename data_verdict<Program, Source, true>::type,
      typename option_verdict<those<is_no_fit_option>, known_to_fit<those<is_no_fit_option>>>::type,
      typename argument_verdict<those_of_arrays<is_option_of_arrays>,
                                reasons::batch_size_and_shuffle_go_with_arrays_a_data_set_has_stages_batch_and_shuffle>::type,
      typename argument_verdict<those_of_arrays<is_sample_weights>, reasons::sample_weight_goes_with_arrays_x_and_y>::type,
      typename argument_verdict<those<is_sample_weight_without_numbers>,
                                reasons::sample_weight_takes_a_vector_of_float_with_a_number_for_each_sample>::type,
      typename argument_verdict<those_beside<is_class_weight, is_sample_weights>,
                                reasons::sample_weight_and_class_weight_exclude_each_other>::type,
      typename argument_verdict<those_of_arrays<is_validation_split>,
                                reasons::validation_split_goes_with_arrays_split_a_data_set_by_data_split_dataset>::type,
      typename argument_verdict<those_beside<is_validation_split, is_validation_data>,
                                reasons::validation_and_validation_split_exclude_each_other>::type,
      constant_verdict<Options...>, typename on_validation<std::remove_cvref_t<Options>>::type...>;
};

/// Checks that a strategy with micro-batches can divide the batches of a source, if their size is part of its type.
template <class Strategy, class Source>
struct micro_batch_verdict {
  using type = no_complaint;
};
template <class Strategy, class Source>
  requires(has_batch_size_in_type<Source> && Source::batch_size % Strategy::backend::split::table.micro_batches != 0)
struct micro_batch_verdict<Strategy, Source> {
  using type =
      batch_cannot_be_cut<samples_in_a_batch<Source::batch_size>, micro_batches<Strategy::backend::split::table.micro_batches>,
                          because<reasons::the_number_of_micro_batches_divides_the_batch>>;
};
template <class Strategy, class Source>
  requires(has_batch_size_in_type<Source> && Strategy::division::divides_layers &&
           Source::batch_size % (Strategy::division::groups * Strategy::division::split::table.micro_batches) != 0)
struct micro_batch_verdict<Strategy, Source> {
  using type =
      batch_cannot_be_cut<samples_in_a_batch<Source::batch_size>,
                          groups_of_micro_batches<Strategy::division::groups, Strategy::division::split::table.micro_batches>,
                          because<reasons::the_number_of_groups_times_that_of_micro_batches_divides_the_batch>>;
};

/// The first diagnostic for the arguments of fit with a strategy.
template <class Strategy, class Program, class Source, class... Options>
struct fit_verdict_with {
  using type = first_complaint<typename fit_verdict<Program, Source, Options...>::type,
                               typename micro_batch_verdict<Strategy, Source>::type>;
};

/// Diagnostics for evaluate(); a Source of arrays<X, Y> stands for x and y.
template <class T>
struct is_no_evaluate_option
    : std::bool_constant<!std::same_as<T, batch_size> && !(is_sample_weight<T> && has_numbers<T>) && !callback<T>> {};
template <class Program, class Source, class... Options>
struct evaluate_verdict {
  template <template <class> class Is>
  using those_of_arrays = std::conditional_t<is_arrays<Source>, type_list<>, filter_t<Is, std::remove_cvref_t<Options>...>>;
  using type = first_complaint<
      typename data_verdict<Program, Source, true>::type,
      typename option_verdict<filter_t<is_no_evaluate_option, std::remove_cvref_t<Options>...>,
                              reasons::evaluate_takes_batch_size_sample_weight_and_callbacks>::type,
      typename argument_verdict<those_of_arrays<is_option_of_arrays>,
                                reasons::batch_size_and_shuffle_go_with_arrays_a_data_set_has_stages_batch_and_shuffle>::type,
      typename argument_verdict<those_of_arrays<is_sample_weights>, reasons::sample_weight_goes_with_arrays_x_and_y>::type,
      constant_verdict<Options...>>;
};

/// Diagnostics for predict().
template <class T>
struct is_no_callback : std::bool_constant<!callback<T>> {};
template <class Program, class Source, class... Options>
struct predict_verdict {
  using type = first_complaint<typename data_verdict<Program, Source, false>::type,
                               typename option_verdict<filter_t<is_no_callback, std::remove_cvref_t<Options>...>,
                                                       reasons::predict_takes_callbacks_after_the_data>::type,
                               constant_verdict<Options...>>;
};

}  // namespace detail

}  // namespace strata
