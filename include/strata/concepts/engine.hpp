// An engine computes the gradients of a program on one device, and updates the parameters that it keeps there.
#pragma once
#include <concepts>
#include <cstddef>
#include <span>
#include <strata/base/arena.hpp>
#include <strata/base/no_callback.hpp>
#include <strata/base/random.hpp>
#include <strata/base/reason.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/concepts/device.hpp>
#include <strata/concepts/stored_samples.hpp>
#include <strata/optimizers/gradient.hpp>

namespace strata {

namespace core {
struct leaf_policy;
class kernel_observer;
enum class purpose;

/// What an engine can do besides what every engine does. It names what differs from the defaults, and has the members:
/// `static constexpr engine_traits traits{.freezes = true};`
struct engine_traits {
  /// `freeze(slots)`: for each slot of layout_of_program whether it is frozen from the next step on, by trainer::set_trainable:
  /// no update changes it, no gradient is computed below the first layer that trains, the gradient of what is frozen is 0, and
  /// its penalty too. forward_backward calls done as before.
  bool freezes = false;
  /// It is that of a process that has some of the layers only, and sends their gradients in one piece.
  /// `gradient_elements()`: the elements of the gradient of a leaf here.
  bool has_some_layers = false;
  /// Its gradients do not lie as the layout says. `read_gradient(gradient, to)`, to: the mean of each element, at the places of
  /// the layout.
  bool reads_gradients = false;
  /// It can keep slots for some slices of the arena only, and update only those: zero.
  /// `keep_slices(slices, slots)`: from now on slots() has only the elements of these slices, one slot after the other, all zero.
  /// `update_slices(optimizer, step, rate, gradient, share_norms)`: as update; the gradient has the elements of the slices only.
  /// share_norms(numbers, arrays) completes so many arrays of norms, one number for each pieces_of the arena, with those of other
  /// processes.
  bool keeps_slices = false;
  /// It can compute a whole step of one process, such as one that updates each parameter while its gradient is in the cache.
  /// `updates_at_once(optimizer)`: whether it can do so for the current batch.
  /// `train_at_once(optimizer, step, rate, reduction)`: forward, backward and update; reduction.reduce(leaf_gradients, samples)
  /// returns the global_gradient of each piece.
  bool updates_at_once = false;
  /// Its device then adds up statistics and metric sums by itself, so that the host need not wait: train_at_once returns a
  /// step_result. `sums_of_step(number)`: what that reads.
  /// `launch_together(n)`: n steps may wait for each other, to be computed in one launch, until something is read that they
  /// change. 1: each step is launched at once, as are those that have been asked for.
  bool defers_sums = false;
  /// It can keep a data set on its device, so that a step needs the indices of its samples only.
  /// `keep_samples(set)`: copies it; returns false if it does not fit. From now on a batch may have samples::stored.
  /// `release_samples()`: frees the memory.
  bool keeps_samples = false;
};
}  // namespace core

namespace reasons {
inline constexpr reason engines_have_a_program_options_a_value_type_and_a_device;
inline constexpr reason engines_have_traits_as_engine_traits;
inline constexpr reason engines_are_made_from_options_a_leaf_policy_and_the_number_of_slots;
inline constexpr reason engines_have_prepare_which_returns_a_number_of_leaves_and_share_among;
inline constexpr reason engines_have_begin_forward_forward_backward_and_backward;
inline constexpr reason engines_have_observe_of_a_kernel_observer;
inline constexpr reason engines_have_sums_set_statistics_leaves_and_penalties;
inline constexpr reason engines_have_on_and_queue;
inline constexpr reason engines_have_gradients_as_leaf_gradients;
inline constexpr reason engines_have_update_of_a_global_gradient_and_update_state;
inline constexpr reason engines_have_measure_and_predict;
inline constexpr reason engines_read_and_write_parameters_and_slots;
}  // namespace reasons

namespace detail {
template <class E, class T>
auto requirements_of_engine_members() {
  if constexpr (!std::constructible_from<E, typename E::options, leaf_policy, int>)
    return lacks<E, reasons::engines_are_made_from_options_a_leaf_policy_and_the_number_of_slots>{};
  else if constexpr (!requires(E e, purpose why) {
                       { e.prepare(1, why, 1) } -> std::same_as<int>;
                       e.share_among(1);
                     })
    return lacks<E, reasons::engines_have_prepare_which_returns_a_number_of_leaves_and_share_among>{};
  else if constexpr (!requires(E e, kernel_observer* observer) { e.observe(observer); })
    return lacks<E, reasons::engines_have_observe_of_a_kernel_observer>{};
  else if constexpr (!requires(E e, const samples<T>& batch, purpose why) {
                       e.begin(why, batch, philox{}, 0, 1);
                       e.forward(0);
                       e.forward_backward(no_callback{});
                       e.backward(0);
                     })
    return lacks<E, reasons::engines_have_begin_forward_forward_backward_and_backward>{};
  else if constexpr (!requires(E e, const E& k, std::span<const double> statistics) {
                       { e.sums(0) } -> std::same_as<double*>;
                       e.set_statistics(0, statistics);
                       { k.leaves() } -> std::same_as<int>;
                       { e.penalties() } -> std::convertible_to<std::span<const double>>;
                     })
    return lacks<E, reasons::engines_have_sums_set_statistics_leaves_and_penalties>{};
  else if constexpr (!requires(const E& k) {
                       { k.on() } -> std::convertible_to<typename E::device>;
                       { k.queue() } -> std::convertible_to<typename E::device::queue>;
                     })
    return lacks<E, reasons::engines_have_on_and_queue>{};
  else if constexpr (!requires(E e) {
                       { e.gradients() } -> std::same_as<leaf_gradients<T, typename E::device>>;
                     })
    return lacks<E, reasons::engines_have_gradients_as_leaf_gradients>{};
  else if constexpr (!requires(E e, const typename E::program::optimizer& optimizer,
                               const global_gradient<T, typename E::device>& gradient) {
                       e.update(optimizer, 0L, 0.1, gradient);
                       e.update_state();
                     })
    return lacks<E, reasons::engines_have_update_of_a_global_gradient_and_update_state>{};
  else if constexpr (!requires(E e, const output_rows<T>& out) {
                       e.measure();
                       e.predict(out);
                     })
    return lacks<E, reasons::engines_have_measure_and_predict>{};
  else if constexpr (!requires(E e, std::span<T> to, std::span<const T> from) {
                       e.read_parameters(to);
                       e.write_parameters(from);
                       e.read_slots(to);
                       e.write_slots(from);
                     })
    return lacks<E, reasons::engines_read_and_write_parameters_and_slots>{};
  else
    return no_complaint{};
}
template <class E>
auto requirements_of_engine() {
  if constexpr (!requires {
                  typename E::program;
                  typename E::options;
                  typename E::value_type;
                  requires computing_device<typename E::device>;
                })
    return lacks<E, reasons::engines_have_a_program_options_a_value_type_and_a_device>{};
  else if constexpr (!requires { requires std::convertible_to<decltype(E::traits), engine_traits>; })
    return lacks<E, reasons::engines_have_traits_as_engine_traits>{};
  else
    return requirements_of_engine_members<E, typename E::value_type>();
}
/// no_complaint, or the first requirement that an engine does not meet.
template <class E>
using engine_verdict = decltype(requirements_of_engine<E>());
}  // namespace detail

namespace core {
/// What an executor needs from a device. An engine knows neither strategies nor processes: an executor decides which leaves the
/// engine computes, exchanges sums with other processes, forms the tree over leaves, and decides when to update.
/// It is constructed from (options, leaf_policy, number of slots of the optimizer). Its types are `E::program`, `E::options`,
/// `E::value_type` and `E::device`, and `E::traits` are engine_traits. A training step calls
///   `begin(purpose, batch, random, rank, processes)`
///       The engine computes the share of process `rank`. The batch stays in host memory until the step ends.
///   `forward(k)`
///       For each segment k of the plan but the last.
///   `forward_backward(done)`
///       The last segment. In a plan of one segment, any thread calls done(g) when the gradients of one more leaf are complete
///       from the last group down to group g. In a plan of several segments done is not called: the gradients are complete from
///       the last group down to the one after the group that opens segment k when forward_backward (k: the last segment) or
///       backward(k) returns.
///   `backward(k)`
///       For each segment but the last, in descending order.
///   `update(optimizer, step, rate, gradient)`, then `update_state()` if the plan has several segments
/// Between two segments the executor adds up statistics:
///   `sums(l)`
///       Of leaf l, on the host: statistics, then (sum, count) of the loss and of each metric. They are complete for leaves of
///       this engine; for leaves of other processes the executor fills them in.
///   `set_statistics(first, values)`
///       Statistics of the whole batch.
/// Other members:
///   `prepare(batch, purpose, processes)`  allocates memory; returns the largest number of leaves of such a batch, or 0 if the
///                                         memory was large enough
///   `share_among(processes)`  allocates memory for training after the number of processes has changed
///   `leaves()`     number of leaves of the global batch of this step
///   `gradients()`  leaf_gradients of its leaves of this step
///   `on()`         its device
///   `queue()`      the queue on which it works
///   `observe(observer)`  a kernel_observer of its training steps from the next one on, or null: step_context::observer
///   `penalties()`  the penalty of each trained parameter, which is added to the loss; on the host
///   `measure()`    computes loss and metrics of its leaves, after begin(purpose::inference, ...)
///   `predict(out)` writes each output for each sample of the batch to host memory, where output_rows says
///   `read_parameters(to)`, `write_parameters(from)`, `read_slots(to)`, `write_slots(from)`  copy whole arenas to and from the
///                                                                                          host
/// On the host it gives access to its arenas without a copy, and to its threads, too:
///   `parameters()`, `slots()`  spans; after writing to them, call `parameters_changed()`
///   `team()`                   its threads
template <class E>
concept engine = std::same_as<detail::engine_verdict<E>, detail::no_complaint>;
}  // namespace core

}  // namespace strata
