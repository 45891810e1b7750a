// What a trainer, fit and evaluate may be given, and the sentences about arguments that do not fit.
#pragma once
#include <concepts>
#include <strata/base/meta.hpp>
#include <strata/base/precision.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/concepts/callback.hpp>
#include <strata/concepts/metric.hpp>
#include <strata/concepts/strategy.hpp>
#include <strata/data/core/closure.hpp>
#include <strata/data/core/sample_view.hpp>
#include <strata/distribute/one_device.hpp>
#include <strata/network/sequential.hpp>
#include <strata/train/arrays.hpp>
#include <strata/train/fit_options.hpp>
#include <strata/train/progress.hpp>
#include <tuple>
#include <type_traits>
#include <utility>

namespace strata {

// The words of the sentences. None is ever defined: the error is the name.
template <int... Extents>
struct the_network_takes;
template <int... Extents>
struct the_data_set_yields;
template <int... Extents>
struct the_network_predicts;
template <int... Extents>
struct the_targets_have;
template <class T>
struct the_network_computes_in;
template <class T>
struct the_batches_hold;
template <class Taken, class Yielded, class Why>
struct data_mismatch;
template <class Loss, label_kind Wanted>
struct the_loss_takes_labels;
template <label_kind Given>
struct the_data_set_has_labels;
template <class Metric, label_kind Kind>
struct metric_does_not_go_with_labels;
template <int Size>
struct samples_in_a_batch;
template <class Batch, class Into, class Why>
struct batch_cannot_be_cut;
template <int Count>
struct micro_batches;  // program/timetable.hpp
template <int Groups, int MicroBatches>
struct groups_of_micro_batches;

inline constexpr reason the_number_of_micro_batches_divides_the_batch{"the number of micro-batches divides the size of a batch"};
inline constexpr reason the_number_of_groups_times_that_of_micro_batches_divides_the_batch{
    "the number of groups times the number of micro-batches of each divides the size of a batch"};

inline constexpr reason input_of_the_network_has_the_shape_of_one_sample{"input<...> has the extents of one sample"};
inline constexpr reason begin_with_input_of_the_shape_of_the_data_then_flatten{
    "the data have as many numbers in another shape: begin with input<their extents> and flatten"};
inline constexpr reason begin_with_input_of_the_shape_of_the_data_then_reshape{
    "the data have as many numbers in another shape: begin with input<their extents> and reshape<...>"};
inline constexpr reason samples_in_a_flat_vector_need_a_shape_write_data_array{
    "a vector of numbers has samples of one number: data::array<float, shape{4}>(values) has samples of four"};
inline constexpr reason the_targets_have_the_shape_of_the_predictions{"the last layer has as many units as a target has numbers"};
inline constexpr reason use_sparse_categorical_crossentropy_or_put_data_one_hot_before_batch{
    "the loss takes one-hot rows: take sparse_categorical_crossentropy, or put data::one_hot<classes> before batch"};
inline constexpr reason this_loss_takes_targets_of_floating_point_numbers_make_them_a_vector_of_float{
    "the loss takes targets: a range of float or double instead of integers"};
inline constexpr reason use_categorical_crossentropy_or_leave_out_one_hot{
    "the loss takes class numbers: take categorical_crossentropy, or leave out one_hot"};
inline constexpr reason class_numbers_are_integers_make_the_labels_a_vector_of_int{
    "the loss takes class numbers: a range of int instead of float"};
inline constexpr reason the_data_set_has_no_labels_write_data_from_tensor_slices_of_x_and_y{
    "the loss compares with labels: data::from_tensor_slices(x, y)"};
inline constexpr reason leave_out_double_in_batch{"the network computes in float: write batch<N> without double"};
inline constexpr reason fit_takes_arrays_of_numbers_x_and_y_or_batches_of_a_data_set{
    "fit and evaluate take arrays of numbers, x and y, or batches: data::from_tensor_slices(x, y) | data::batch<64>"};
inline constexpr reason predict_takes_an_array_of_numbers_or_batches_of_a_data_set{
    "predict takes an array of numbers, or batches: data::from_tensor_slices(x) | data::batch<64>"};
inline constexpr reason x_and_y_are_contiguous_numbers_such_as_a_vector_of_float{
    "arrays have their numbers one after the other in memory: a vector or span of float, not a vector of vectors"};
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
inline constexpr reason data_of_another_shape_get_it_from_data_array_or_data_map_to{
    "the data have as many numbers in another shape: data::array<float, shape{28, 28, 1}>(values) has the network's"};
inline constexpr reason the_data_must_come_in_batches_put_batch_after_it{"fit and evaluate take batches: data | data::batch<64>"};
inline constexpr reason fit_takes_options_and_callbacks{
    "fit takes epochs, steps_per_epoch, steps_per_execution, batch_size, shuffle, sample_weight, class_weight, validation, "
    "validation_split, "
    "validation_freq, validation_steps, verbosity and callbacks"};
inline constexpr reason the_hooks_of_a_callback_take_a_training_state{
    "each hook of a callback takes a training_state&, or that and a fitted_model&"};
inline constexpr reason the_hooks_of_evaluate_and_predict_take_a_pass_state{
    "each on_test_ and on_predict_ hook of a callback takes a pass_state&, or that and a fitted_model&"};
inline constexpr reason session_callbacks_have_restore_after_step_after_epoch_and_after_training{
    "a session_callback has restore, after_step, after_epoch and after_training, each of a training_session&"};
inline constexpr reason a_callback_that_changes_in_fit_cannot_be_const{
    "a callback whose hooks are not const, such as early_stopping, changes during fit: it cannot be const"};
inline constexpr reason a_trainer_takes_metrics_a_strategy_a_precision_and_a_seed{
    "after network, optimizer and loss come metrics, a strategy, a precision and a seed"};
inline constexpr reason a_trainer_takes_one_strategy_one_precision_and_one_seed{
    "a trainer has one strategy, one precision and one seed, and several metrics"};
inline constexpr reason options_and_callbacks_go_to_fit_after_the_data{
    "options such as epochs and steps_per_execution, and callbacks, go to fit, after the data: model.fit(data, epochs(2))"};
inline constexpr reason it_is_no_metric_which_has_measure_and_no_strategy_which_has_executor{
    "a metric has measure(prediction, truth), which returns a number; a strategy has executor<Program>"};

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

/// What fit takes besides the data: options and callbacks, in any order.
template <class O>
concept fit_option = std::same_as<O, epochs> || std::same_as<O, initial_epoch> || std::same_as<O, steps_per_epoch> ||
                     std::same_as<O, steps_per_execution> || std::same_as<O, batch_size> || std::same_as<O, shuffle> ||
                     std::same_as<O, verbosity> || std::same_as<O, validation_split> || std::same_as<O, validation_freq> ||
                     std::same_as<O, validation_steps> || detail::is_sample_weight<O> || std::same_as<O, class_weight> ||
                     detail::is_validation<O> || callback<O> || session_callback<O>;

/// What a trainer takes besides network, optimizer and loss.
template <class E>
concept trainer_extra = metric<E> || strategy<E> || precision_policy<E> || std::same_as<E, seed>;

namespace detail {

/// Whether a source has what a program needs: no_complaint, or the sentence.
template <class Program, class Source, bool NeedsLabels>
struct data_verdict {
  using network = typename Program::network;
  using loss = typename Program::loss;
  using T = typename Program::value_type;
  using held = typename Source::value_type::value_type;
  static constexpr shape taken = network::input_shape, yielded = Source::sample_shape, predicted = network::output_shape;

  static constexpr const reason& why_other_shape() {
    if (yielded == shape{1}) return samples_in_a_flat_vector_need_a_shape_write_data_array;
    if (yielded.size() != taken.size()) return input_of_the_network_has_the_shape_of_one_sample;
    if (!NeedsLabels) return data_of_another_shape_get_it_from_data_array_or_data_map_to;  // the network is trained already
    return taken.rank() == 1 ? begin_with_input_of_the_shape_of_the_data_then_flatten
                             : begin_with_input_of_the_shape_of_the_data_then_reshape;
  }
  static constexpr const reason& why_other_labels() {
    if (Source::labels == label_kind::none) return the_data_set_has_no_labels_write_data_from_tensor_slices_of_x_and_y;
    if (loss::labels == label_kind::dense)
      return takes_classes<loss> ? use_sparse_categorical_crossentropy_or_put_data_one_hot_before_batch
                                 : this_loss_takes_targets_of_floating_point_numbers_make_them_a_vector_of_float;
    return Source::target_shape.size() == 1 ? class_numbers_are_integers_make_the_labels_a_vector_of_int
                                            : use_categorical_crossentropy_or_leave_out_one_hot;
  }

  static auto sentence() {
    if constexpr (yielded != taken)
      return std::type_identity<
          data_mismatch<typename spelled<the_network_takes, taken>::type, typename spelled<the_data_set_yields, yielded>::type,
                        because<why_other_shape()>>>{};
    else if constexpr (NeedsLabels && Source::labels != loss::labels)
      return std::type_identity<data_mismatch<the_loss_takes_labels<loss, loss::labels>, the_data_set_has_labels<Source::labels>,
                                              because<why_other_labels()>>>{};
    else if constexpr (NeedsLabels && loss::labels == label_kind::dense && Source::target_shape != predicted)
      return std::type_identity<data_mismatch<typename spelled<the_network_predicts, predicted>::type,
                                              typename spelled<the_targets_have, Source::target_shape>::type,
                                              because<the_targets_have_the_shape_of_the_predictions>>>{};
    else if constexpr (sizeof(held) > sizeof(T))
      return std::type_identity<
          data_mismatch<the_network_computes_in<T>, the_batches_hold<held>, because<leave_out_double_in_batch>>>{};
    else
      return std::type_identity<no_complaint>{};
  }
  using type = typename decltype(sentence())::type;
};

template <class Program, class Source, bool NeedsLabels>
  requires(!batch_source<Source>)
struct data_verdict<Program, Source, NeedsLabels> {
  static constexpr bool is_view = data::detail::is_element_view<Source>;
  using type = wrong_argument<Source, because<(is_view       ? the_data_must_come_in_batches_put_batch_after_it
                                               : NeedsLabels ? fit_takes_arrays_of_numbers_x_and_y_or_batches_of_a_data_set
                                                             : predict_takes_an_array_of_numbers_or_batches_of_a_data_set)>>;
};
template <class Program, bool NeedsLabels>
struct data_verdict<Program, data::refused_view, NeedsLabels> {
  using type = told;
};

/// Two arrays, in the place of a source.
template <class X, class Y>
struct arrays {};
template <class Program, class X, class Y>
struct data_verdict<Program, arrays<X, Y>, true> {
  static auto sentence() {
    if constexpr (!array_traits<X>::valid)
      return std::type_identity<wrong_argument<X, because<x_and_y_are_contiguous_numbers_such_as_a_vector_of_float>>>{};
    else if constexpr (!array_traits<Y>::valid)
      return std::type_identity<wrong_argument<Y, because<x_and_y_are_contiguous_numbers_such_as_a_vector_of_float>>>{};
    else
      return data_verdict<Program,
                          decltype(batches_in_order<typename Program::value_type>(
                              std::declval<samples_of_arrays_t<Program, X, Y>>(), {}, batch_size(1))),
                          true>{};
  }
  using type = typename decltype(sentence())::type;
};
/// One array, in the place of a source of samples without labels.
template <class Program, class X>
struct data_verdict<Program, arrays<X, void>, false> {
  using network = typename Program::network;
  static auto sentence() {
    if constexpr (!array_traits<X>::valid)
      return std::type_identity<wrong_argument<X, because<x_and_y_are_contiguous_numbers_such_as_a_vector_of_float>>>{};
    else
      return data_verdict<Program,
                          decltype(batches_in_order<typename Program::value_type>(std::declval<samples_of_array_t<Program, X>>(),
                                                                                  {}, batch_size(1))),
                          false>{};
  }
  using type = typename decltype(sentence())::type;
};

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

/// Calls f(source), of any batch size. Copies a const source, because iterating mutates it. Other types were diagnosed by
/// data_verdict.
template <class Source, class F>
void with_source(Source& source, F&& f) {
  using own = std::remove_const_t<Source>;
  if constexpr (batch_source<Source&>) {
    f(static_cast<of_any_batch_size_t<own>&>(source));
  } else if constexpr (batch_source<own&>) {
    of_any_batch_size_t<own> copy(source);
    f(copy);
  }
}

template <class T>
struct is_no_fit_option : std::bool_constant<!fit_option<T>> {};
template <class T>
struct is_no_trainer_extra : std::bool_constant<!trainer_extra<T>> {};

/// Options that say how arrays become batches.
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

template <class Verdict>
struct is_complaint : std::bool_constant<!std::is_same_v<Verdict, no_complaint>> {};

template <label_kind Kind>
struct unfit_for {
  template <class M>
  struct predicate : std::bool_constant<!measures<M, Kind>> {};
};
template <label_kind Kind, class Unfit>
struct metric_verdict {
  using type = no_complaint;
};
template <label_kind Kind, class First, class... More>
struct metric_verdict<Kind, type_list<First, More...>> {
  using type = metric_does_not_go_with_labels<First, Kind>;
};
template <label_kind Kind, class First, class... More>
  requires(!metric<First>)
struct metric_verdict<Kind, type_list<First, More...>>
    : lacks<First, named<First> ? metrics_have_measure_of_a_prediction_and_its_label : metrics_have_a_name> {};
template <label_kind Kind, class... M>
auto metrics_unfit_for(type_list<M...>) -> filter_t<unfit_for<Kind>::template predicate, M...>;

/// Metrics whose settings make no sense for so many predictions: `refusal(predictions)` says why, or is null.
template <int Predictions>
struct refused_for {
  template <class M>
  struct predicate : std::false_type {};
  template <class M>
    requires requires { M::refusal(Predictions); }
  struct predicate<M> : std::bool_constant<M::refusal(Predictions) != nullptr> {};
};
template <int Predictions, class Refused>
struct metric_refusal {
  using type = no_complaint;
};
template <int Predictions, class First, class... More>
struct metric_refusal<Predictions, type_list<First, More...>> {
  using type = wrong_argument<First, because<*First::refusal(Predictions)>>;
};
template <int Predictions, class... M>
auto metrics_refused_for(type_list<M...>) -> filter_t<refused_for<Predictions>::template predicate, M...>;

/// The first refused argument, as a sentence.
template <class Refused, const reason& Why>
struct argument_verdict {
  using type = wrong_argument<at_t<0, Refused>, because<Why>>;
};
template <const reason& Why>
struct argument_verdict<type_list<>, Why> {
  using type = no_complaint;
};
/// What fit, evaluate and predict say about an option that they do not know; `Known` says what they know.
template <class Refused, const reason& Known>
struct option_verdict : argument_verdict<Refused, Known> {};
template <class First, class... More, const reason& Known>
  requires hooks::any<First>
struct option_verdict<type_list<First, More...>, Known>
    : argument_verdict<type_list<First>, the_hooks_of_a_callback_take_a_training_state> {};
template <class First, class... More, const reason& Known>
  requires(hooks::any<First> && hooks::of_fit::fit<First>)
struct option_verdict<type_list<First, More...>, Known>
    : argument_verdict<type_list<First>, the_hooks_of_evaluate_and_predict_take_a_pass_state> {};
template <class First, class... More, const reason& Known>
  requires(hooks::names_session<First> && !hooks::any<First>)
struct option_verdict<type_list<First, More...>, Known>
    : lacks<First, session_callbacks_have_restore_after_step_after_epoch_and_after_training> {};

/// Of an option without its reference: a callback whose hooks cannot be called because it is const.
template <class Option>
struct is_const_but_changes
    : std::bool_constant<std::is_const_v<Option> && (session_callback<std::remove_const_t<Option>> ||
                                                     (callback<std::remove_const_t<Option>> && !callback<Option>))> {};

/// What fit says about its arguments: the first sentence.
template <class Program, class Source, class... Options>
struct fit_verdict {
  template <class Option>
  struct on_validation {
    using type = no_complaint;
  };
  template <class Validation>
  struct on_validation<validation<Validation>> : data_verdict<Program, Validation, true> {};
  template <class X, class Y, class W>
    requires(!std::is_void_v<Y>)
  struct on_validation<validation<X, Y, W>> : data_verdict<Program, arrays<X, Y>, true> {};
  template <template <class> class Is>
  using those = filter_t<Is, std::remove_cvref_t<Options>...>;

  static auto sentence() {
    using data = typename data_verdict<Program, Source, true>::type;
    using refused = filter_t<is_no_fit_option, std::remove_cvref_t<Options>...>;
    using of_arrays = filter_t<is_option_of_arrays, std::remove_cvref_t<Options>...>;
    using split = filter_t<is_validation_split, std::remove_cvref_t<Options>...>;
    using constant = filter_t<is_const_but_changes, std::remove_reference_t<Options>...>;
    using validations = filter_t<is_complaint, typename on_validation<std::remove_cvref_t<Options>>::type...>;
    if constexpr (!std::is_same_v<data, no_complaint>)
      return std::type_identity<data>{};
    else if constexpr (!std::is_same_v<refused, type_list<>>)
      return option_verdict<refused, fit_takes_options_and_callbacks>{};
    else if constexpr (!std::is_same_v<of_arrays, type_list<>> && !is_arrays<Source>)
      return argument_verdict<of_arrays, batch_size_and_shuffle_go_with_arrays_a_data_set_has_stages_batch_and_shuffle>{};
    else if constexpr (!std::is_same_v<those<is_sample_weights>, type_list<>> && !is_arrays<Source>)
      return argument_verdict<those<is_sample_weights>, sample_weight_goes_with_arrays_x_and_y>{};
    else if constexpr (!std::is_same_v<those<is_sample_weight_without_numbers>, type_list<>>)
      return argument_verdict<those<is_sample_weight_without_numbers>,
                              sample_weight_takes_a_vector_of_float_with_a_number_for_each_sample>{};
    else if constexpr (!std::is_same_v<those<is_sample_weights>, type_list<>> &&
                       !std::is_same_v<those<is_class_weight>, type_list<>>)
      return argument_verdict<those<is_class_weight>, sample_weight_and_class_weight_exclude_each_other>{};
    else if constexpr (!std::is_same_v<split, type_list<>> && !is_arrays<Source>)
      return argument_verdict<split, validation_split_goes_with_arrays_split_a_data_set_by_data_split_dataset>{};
    else if constexpr (!std::is_same_v<split, type_list<>> &&
                       !std::is_same_v<filter_t<is_validation_data, std::remove_cvref_t<Options>...>, type_list<>>)
      return argument_verdict<split, validation_and_validation_split_exclude_each_other>{};
    else if constexpr (!std::is_same_v<constant, type_list<>>)
      return argument_verdict<constant, a_callback_that_changes_in_fit_cannot_be_const>{};
    else if constexpr (!std::is_same_v<validations, type_list<>>)
      return std::type_identity<at_t<0, validations>>{};
    else
      return std::type_identity<no_complaint>{};
  }
  using type = typename decltype(sentence())::type;
};

/// Whether a strategy that cuts batches can cut those of a source, as far as its type tells.
template <class Strategy, class Source>
struct micro_batch_verdict {
  using type = no_complaint;
};
template <class Strategy, class Source>
  requires(has_batch_size_in_type<Source> && Source::batch_size % Strategy::backend::split::table.micro_batches != 0)
struct micro_batch_verdict<Strategy, Source> {
  using type =
      batch_cannot_be_cut<samples_in_a_batch<Source::batch_size>, micro_batches<Strategy::backend::split::table.micro_batches>,
                          because<the_number_of_micro_batches_divides_the_batch>>;
};
template <class Strategy, class Source>
  requires(has_batch_size_in_type<Source> &&
           Source::batch_size % (Strategy::groups_that_cut * Strategy::split::table.micro_batches) != 0)
struct micro_batch_verdict<Strategy, Source> {
  using type = batch_cannot_be_cut<samples_in_a_batch<Source::batch_size>,
                                   groups_of_micro_batches<Strategy::groups_that_cut, Strategy::split::table.micro_batches>,
                                   because<the_number_of_groups_times_that_of_micro_batches_divides_the_batch>>;
};

/// The first sentence of fit with a strategy.
template <class Strategy, class Program, class Source, class... Options>
struct fit_verdict_with {
  using arguments = typename fit_verdict<Program, Source, Options...>::type;
  using type = std::conditional_t<std::is_same_v<arguments, no_complaint>, typename micro_batch_verdict<Strategy, Source>::type,
                                  arguments>;
};

/// The same of evaluate; a Source of arrays<X, Y> stands for x and y.
template <class T>
struct is_no_evaluate_option
    : std::bool_constant<!std::same_as<T, batch_size> && !(is_sample_weight<T> && has_numbers<T>) && !callback<T>> {};
template <class Program, class Source, class... Options>
struct evaluate_verdict {
  static auto sentence() {
    using data = typename data_verdict<Program, Source, true>::type;
    using refused = filter_t<is_no_evaluate_option, std::remove_cvref_t<Options>...>;
    using sizes = filter_t<is_option_of_arrays, std::remove_cvref_t<Options>...>;
    using weights = filter_t<is_sample_weights, std::remove_cvref_t<Options>...>;
    using constant = filter_t<is_const_but_changes, std::remove_reference_t<Options>...>;
    if constexpr (!std::is_same_v<data, no_complaint>)
      return std::type_identity<data>{};
    else if constexpr (!std::is_same_v<refused, type_list<>>)
      return option_verdict<refused, evaluate_takes_batch_size_sample_weight_and_callbacks>{};
    else if constexpr (!std::is_same_v<sizes, type_list<>> && !is_arrays<Source>)
      return argument_verdict<sizes, batch_size_and_shuffle_go_with_arrays_a_data_set_has_stages_batch_and_shuffle>{};
    else if constexpr (!std::is_same_v<weights, type_list<>> && !is_arrays<Source>)
      return argument_verdict<weights, sample_weight_goes_with_arrays_x_and_y>{};
    else
      return argument_verdict<constant, a_callback_that_changes_in_fit_cannot_be_const>{};
  }
  using type = typename decltype(sentence())::type;
};

/// And of predict.
template <class T>
struct is_no_callback : std::bool_constant<!callback<T>> {};
template <class Program, class Source, class... Options>
struct predict_verdict {
  static auto sentence() {
    using data = typename data_verdict<Program, Source, false>::type;
    using refused = filter_t<is_no_callback, std::remove_cvref_t<Options>...>;
    using constant = filter_t<is_const_but_changes, std::remove_reference_t<Options>...>;
    if constexpr (!std::is_same_v<data, no_complaint>)
      return std::type_identity<data>{};
    else if constexpr (!std::is_same_v<refused, type_list<>>)
      return option_verdict<refused, predict_takes_callbacks_after_the_data>{};
    else
      return argument_verdict<constant, a_callback_that_changes_in_fit_cannot_be_const>{};
  }
  using type = typename decltype(sentence())::type;
};

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
/// Of the extra arguments of a trainer those of which there may be one only, where there is another before.
template <class... Extra>
using repeated_extras =
    join_t<typename second_of<filter_t<is_strategy, Extra...>>::type, typename second_of<filter_t<is_precision, Extra...>>::type,
           typename second_of<filter_t<is_seed, Extra...>>::type>;

template <class Refused>
struct extra_verdict : argument_verdict<Refused, a_trainer_takes_metrics_a_strategy_a_precision_and_a_seed> {};
template <class First, class... More>
  requires fit_option<First>
struct extra_verdict<type_list<First, More...>>
    : argument_verdict<type_list<First>, options_and_callbacks_go_to_fit_after_the_data> {};
template <class First, class... More>
  requires has_executor<First>
struct extra_verdict<type_list<First, More...>> : lacks<First, a_strategy_is_copyable_and_has_a_name> {};
template <class First, class... More>
  requires(has_measure<First, std::int32_t> || has_measure<First, std::span<const double>>)
struct extra_verdict<type_list<First, More...>> : lacks<First, metrics_have_a_name> {};
template <class First, class... More>
  requires names_backend<First>
struct extra_verdict<type_list<First, More...>>
    : argument_verdict<type_list<First>, a_backend_is_a_template_argument_write_one_device_of_fits_in_8_MiB_in_angle_brackets> {};
/// Probably a metric, or a strategy without options: it has a name, and nothing but static members.
template <class First, class... More>
  requires(named<First> && std::is_empty_v<First> && !layer<First> && !has_executor<First> && !fit_option<First> &&
           !names_backend<First>)
struct extra_verdict<type_list<First, More...>>
    : lacks<First, it_is_no_metric_which_has_measure_and_no_strategy_which_has_executor> {};

}  // namespace detail

}  // namespace strata
