// What a strategy gives the trainer: it runs the steps of one program.
#pragma once
#include <concepts>
#include <cstddef>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/reason.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/concepts/process_group.hpp>
#include <strata/program/metric_sums.hpp>
#include <strata/program/plan.hpp>
#include <strata/program/program.hpp>
#include <strata/program/step_result.hpp>
#include <type_traits>
#include <utility>

namespace strata {

namespace core {
class kernel_observer;  // strata/kernel/kernel_observer.hpp

/// The samples of a process that trains on samples of its own: each `of`-th one, from number `index` on.
struct data_share {
  std::size_t index = 0, of = 1;
};

/// Thrown by `parameters()` of a process that has only a part of them at that moment.
struct divided_parameters : strata_error {
  using strata_error::strata_error;
};

/// What an executor can do besides what every executor does. It names what differs from the defaults, and has the members:
/// `static constexpr executor_traits traits{.freezes = true};`
struct executor_traits {
  /// `freeze(slots)`: see engine_traits.
  bool freezes = false;
  /// `keep_gradient(bool)`: whether the gradient is kept from now on. `gradient()`: the mean of each trained element over the
  /// samples of the last step, before penalties and clipping.
  bool keeps_gradients = false;
  /// Its process has the state of the optimizer. `slots()`: those of all trained parameters.
  bool has_slots = false;
  /// Its processes have parts of that state. `collect_slots(in_all)`: all processes call it; the chief gets all slots, or all
  /// processes do. `whole_slots()`: these. `clear_slots()`: all processes call it; all get parameters(), and each sets the slots
  /// that it has to 0.
  bool collects_slots = false;
  /// Its processes train on different batches. `share_of_data()`: the data_share of this process, where fit is given arrays.
  bool shares_data = false;
  /// `keep_samples(set)`, `release_samples()`: see engine_traits.
  bool keeps_samples = false;
};

/// The members that most executors have in common. An executor derives from it and hides those that differ.
struct executor_defaults {
  static constexpr executor_traits traits{};
  static constexpr bool serve() { return false; }
  static row_choice own_rows() { return {}; }
  static row_writers writers() { return {}; }
  static constexpr double communicating() { return 0; }
  static constexpr double waiting() { return 0; }
  static void observe(kernel_observer*) {}
  static void launch_together(long) {}
};
}  // namespace core

namespace reasons {
inline constexpr reason executors_have_prepare_of_a_batch_size_and_a_purpose;
inline constexpr reason executors_have_train_step_which_returns_metric_sums;
inline constexpr reason executors_have_finish_which_returns_metric_sums;
inline constexpr reason executors_have_evaluate_step_which_returns_metric_sums;
inline constexpr reason executors_have_predict_of_a_batch_and_its_outputs;
inline constexpr reason executors_have_parameters_as_a_span_and_a_const_span;
inline constexpr reason executors_have_parameters_changed;
inline constexpr reason executors_have_optimizer_step_and_learning_rate_as_counted_optimizer_has;
inline constexpr reason executors_have_a_group_such_as_a_solo_group;
inline constexpr reason executors_have_what_executor_defaults_has;
}  // namespace reasons

namespace detail {
template <class E, class Program>
auto requirements_of_executor() {
  using T = typename Program::value_type;
  using sums = metric_sums<Program>;
  if constexpr (!requires(E e) { e.prepare(64, purpose::training); })
    return lacks<E, reasons::executors_have_prepare_of_a_batch_size_and_a_purpose>{};
  else if constexpr (!requires(E e, const samples<T>& batch) {
                       { e.train_step(batch) } -> std::convertible_to<step_result<Program>>;
                     })
    return lacks<E, reasons::executors_have_train_step_which_returns_metric_sums>{};
  else if constexpr (!requires(E e) {
                       { e.finish() } -> std::same_as<sums>;
                     })
    return lacks<E, reasons::executors_have_finish_which_returns_metric_sums>{};
  else if constexpr (!requires(E e, const samples<T>& batch) {
                       { e.evaluate_step(batch) } -> std::same_as<sums>;
                     })
    return lacks<E, reasons::executors_have_evaluate_step_which_returns_metric_sums>{};
  else if constexpr (!requires(E e, const samples<T>& batch, const output_rows<T>& out) { e.predict(batch, out); })
    return lacks<E, reasons::executors_have_predict_of_a_batch_and_its_outputs>{};
  else if constexpr (!requires(E e, const E& k) {
                       { e.parameters() } -> std::same_as<std::span<T>>;
                       { k.parameters() } -> std::same_as<std::span<const T>>;
                     })
    return lacks<E, reasons::executors_have_parameters_as_a_span_and_a_const_span>{};
  else if constexpr (!requires(E e) { e.parameters_changed(); })
    return lacks<E, reasons::executors_have_parameters_changed>{};
  else if constexpr (!requires(E e, const E& k) {
                       { k.optimizer() } -> std::same_as<const typename Program::optimizer&>;
                       { k.step() } -> std::same_as<long>;
                       { k.learning_rate() } -> std::same_as<double>;
                       e.set_learning_rate(0.1);
                     })
    return lacks<E, reasons::executors_have_optimizer_step_and_learning_rate_as_counted_optimizer_has>{};
  else if constexpr (!requires(E e, const E& k) {
                       e.group();
                       { k.group().is_chief() } -> std::same_as<bool>;
                     })
    return lacks<E, reasons::executors_have_a_group_such_as_a_solo_group>{};
  else if constexpr (!elastic_group<std::remove_cvref_t<decltype(std::declval<E&>().group())>>)
    return process_group_verdict<std::remove_cvref_t<decltype(std::declval<E&>().group())>>{};
  else if constexpr (!requires(E e, const E& k, kernel_observer* observer) {
                       { e.serve() } -> std::same_as<bool>;
                       { k.own_rows() } -> std::same_as<row_choice>;
                       { k.writers() } -> std::same_as<row_writers>;
                       e.observe(observer);
                       e.launch_together(1L);
                       requires std::convertible_to<decltype(E::traits), executor_traits>;
                       { k.communicating() } -> std::same_as<double>;
                       { k.waiting() } -> std::same_as<double>;
                     })
    return lacks<E, reasons::executors_have_what_executor_defaults_has>{};
  else
    return no_complaint{};
}
/// no_complaint, or the first requirement that an executor does not meet.
template <class E, class Program>
using executor_verdict = decltype(requirements_of_executor<E, Program>());
}  // namespace detail

namespace core {
/// Computing (T is the program's value_type):
///   `prepare(batch_size, purpose)`   makes room for batches of up to that size
///   `train_step(batch)`              one update; returns the metric sums of the global batch, or a step_result
///   `finish()`                       the end of an epoch; returns the metric sums that no step has returned yet
///   `evaluate_step(batch)`           metric sums without an update
///   `predict(batch, out)`            output_rows: where each output goes
///   `parameters()`                   the arena that layout_of_program describes, or throws divided_parameters. A write to it is
///                                    followed by
///   `parameters_changed()`
/// Optimizer (a counted_optimizer has all of these):
///   `optimizer()`, `step()`          the optimizer, and the updates so far
///   `learning_rate()`                the rate of the next train_step; `set_learning_rate(rate)` replaces the schedule
/// Processes:
///   `group()`                        an elastic_group; solo_group for one process
///   `serve()`                        of a process that only serves others: returns true when the training is over. Returns false
///                                    at once in a process that trains
///   `own_rows()`                     the rows of a batch that this process reads; empty: all
///   `writers()`                      threads that may write batches between two steps; empty: none
///   `observe(observer)`              a kernel_observer of its training steps from the next one on; null: none
///   `communicating()`, `waiting()`   seconds so far of sending messages, and of waiting for them
/// Devices that compute while the host goes on:
///   `launch_together(n)`             n steps may be computed in one launch, unless something reads before what they change
///   `traits`                         executor_traits
/// executor_defaults has the last eight for a single process on the host. An executor whose backend is chosen at run time has
/// `kernels()`, too: the kernel_list of that backend.
template <class E, class Program>
concept executor = std::same_as<detail::executor_verdict<E, Program>, detail::no_complaint>;
}  // namespace core

namespace detail {
/// See trainer::reset_optimizer.
template <class E>
[[gnu::cold]] void reset_optimizer(E& executor) {
  if constexpr (E::traits.has_slots)
    for (auto& each : executor.slots()) each = 0;
  else
    executor.clear_slots();  // whole slots would take the memory that their division saves
  executor.set_step(0);
  executor.drop_rounding_errors();
  executor.parameters_changed();
}
}  // namespace detail

}  // namespace strata
