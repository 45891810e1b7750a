// What a trainer, fit and evaluate may be given, and the sentences about arguments that do not fit.
#pragma once
#include <concepts>
#include <strata/base/meta.hpp>
#include <strata/base/precision.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/concepts/callback.hpp>
#include <strata/concepts/metric.hpp>
#include <strata/concepts/strategy.hpp>
#include <strata/distribute/one_device.hpp>
#include <strata/network/sequential.hpp>
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
template <class Taken, class Yielded>
struct data_mismatch;
template <class Loss, label_kind Wanted>
struct the_loss_takes_labels;
template <label_kind Given>
struct the_data_set_has_labels;
template <class Metric, label_kind Kind>
struct metric_does_not_go_with_labels;
template <class Argument, class Why>
struct wrong_argument;

inline constexpr reason fit_and_evaluate_take_batches_put_batch_after_the_data{
    "fit and evaluate take batches: data | data::batch<64>"};
inline constexpr reason fit_takes_options_and_callbacks{"fit takes epochs, steps_per_epoch, validation, verbosity and callbacks"};
inline constexpr reason the_hooks_of_a_callback_take_a_training_state{"each hook of a callback takes a training_state&"};
inline constexpr reason session_callbacks_have_restore_after_step_after_epoch_and_after_training{
    "a session_callback has restore, after_step, after_epoch and after_training, each of a training_session&"};
inline constexpr reason a_trainer_takes_metrics_a_strategy_a_precision_and_a_seed{
    "after network, optimizer and loss come metrics, a strategy, a precision and a seed"};
inline constexpr reason metrics_have_measure_of_a_prediction_and_its_label_strategies_have_executor{
    "a metric has measure(prediction, truth), which returns a number; a strategy has executor<Program>"};

namespace detail {
template <class T>
inline constexpr bool is_validation = false;
template <class Source>
inline constexpr bool is_validation<validation<Source>> = true;
}  // namespace detail

/// What fit takes besides the data: options and callbacks, in any order.
template <class O>
concept fit_option = std::same_as<O, epochs> || std::same_as<O, initial_epoch> || std::same_as<O, steps_per_epoch> ||
                     std::same_as<O, verbosity> || detail::is_validation<O> || callback<O> || session_callback<O>;

/// What a trainer takes besides network, optimizer and loss.
template <class E>
concept trainer_extra = metric<E> || strategy<E> || precision_policy<E> || std::same_as<E, seed>;

namespace detail {

// (With the sequence as a default template argument g++ 12 crashes.)
template <template <int...> class Words, shape S>
struct spelled {
  template <int... I>
  static auto with(std::integer_sequence<int, I...>) -> Words<S[I]...>;
  using type = decltype(with(std::make_integer_sequence<int, S.rank()>{}));
};

/// Whether a source has what a program needs: no_complaint, or the sentence.
template <class Program, class Source, bool NeedsLabels>
struct data_verdict {
  using network = typename Program::network;
  using loss = typename Program::loss;
  static constexpr bool shape_fits = Source::sample_shape == network::input_shape;
  static constexpr bool labels_fit = !NeedsLabels || Source::labels == loss::labels;
  static constexpr bool targets_fit =
      !NeedsLabels || !labels_fit || loss::labels == label_kind::sparse || Source::target_shape == network::output_shape;

  static auto sentence() {
    if constexpr (!shape_fits)
      return std::type_identity<data_mismatch<typename spelled<the_network_takes, network::input_shape>::type,
                                              typename spelled<the_data_set_yields, Source::sample_shape>::type>>{};
    else if constexpr (!labels_fit)
      return std::type_identity<
          data_mismatch<the_loss_takes_labels<loss, loss::labels>, the_data_set_has_labels<Source::labels>>>{};
    else if constexpr (!targets_fit)
      return std::type_identity<data_mismatch<typename spelled<the_network_takes, network::output_shape>::type,
                                              typename spelled<the_data_set_yields, Source::target_shape>::type>>{};
    else
      return std::type_identity<no_complaint>{};
  }
  using type = typename decltype(sentence())::type;
};

template <class Program, class Source, bool NeedsLabels>
  requires(!batch_source<Source>)
struct data_verdict<Program, Source, NeedsLabels> {
  using type = wrong_argument<Source, because<fit_and_evaluate_take_batches_put_batch_after_the_data>>;
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

/// Calls f(source). Copies a const source, because iterating mutates it. Other types were diagnosed by data_verdict.
template <class Source, class F>
void with_source(Source& source, F&& f) {
  if constexpr (batch_source<Source&>) {
    f(source);
  } else if constexpr (batch_source<std::remove_const_t<Source>&>) {
    std::remove_const_t<Source> copy(source);
    f(copy);
  }
}

template <class T>
struct is_no_fit_option : std::bool_constant<!fit_option<T>> {};
template <class T>
struct is_no_trainer_extra : std::bool_constant<!trainer_extra<T>> {};

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

/// The first refused argument, as a sentence.
template <class Refused, const reason& Why>
struct argument_verdict {
  using type = wrong_argument<at_t<0, Refused>, because<Why>>;
};
template <const reason& Why>
struct argument_verdict<type_list<>, Why> {
  using type = no_complaint;
};
template <class Refused>
struct fit_option_verdict : argument_verdict<Refused, fit_takes_options_and_callbacks> {};
template <class First, class... More>
  requires hooks::any<First>
struct fit_option_verdict<type_list<First, More...>>
    : argument_verdict<type_list<First>, the_hooks_of_a_callback_take_a_training_state> {};
template <class First, class... More>
  requires(hooks::names_session<First> && !hooks::any<First>)
struct fit_option_verdict<type_list<First, More...>>
    : lacks<First, session_callbacks_have_restore_after_step_after_epoch_and_after_training> {};

template <class Refused>
struct extra_verdict : argument_verdict<Refused, a_trainer_takes_metrics_a_strategy_a_precision_and_a_seed> {};
template <class First, class... More>
  requires has_executor<First>
struct extra_verdict<type_list<First, More...>> : lacks<First, a_strategy_is_copyable_and_has_a_name> {};
template <class First, class... More>
  requires(has_measure<First, std::int32_t> || has_measure<First, std::span<const double>>)
struct extra_verdict<type_list<First, More...>> : lacks<First, metrics_have_a_name> {};
/// Probably a metric, or a strategy without options: it has a name, and nothing but static members.
template <class First, class... More>
  requires(named<First> && std::is_empty_v<First> && !layer<First> && !has_executor<First>)
struct extra_verdict<type_list<First, More...>>
    : lacks<First, metrics_have_measure_of_a_prediction_and_its_label_strategies_have_executor> {};

}  // namespace detail

}  // namespace strata
