// The executor of strategies whose step is one module that a PJRT plugin runs, on one device or on several replicas.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <strata/base/arena.hpp>
#include <strata/base/error.hpp>
#include <strata/base/exceptions.hpp>
#include <strata/base/random.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/exchange/solo_operations.hpp>
#include <strata/program/counted_optimizer.hpp>
#include <strata/program/executor.hpp>
#include <strata/program/initialize.hpp>
#include <strata/program/metric_sums.hpp>
#include <strata/program/program.hpp>
#include <strata/xla/module.hpp>
#include <strata/xla/pjrt/client.hpp>
#include <strata/xla/runtime/calls_in_flight.hpp>
#include <strata/xla/runtime/choose_devices.hpp>
#include <strata/xla/runtime/compiled_modules.hpp>
#include <strata/xla/runtime/host_copies.hpp>
#include <strata/xla/runtime/result_reader.hpp>
#include <strata/xla/runtime/running_module.hpp>
#include <strata/xla/runtime/state_places.hpp>
#include <strata/xla/runtime/training_sums.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata::core {

/// Parameters and the optimizer's state are on the devices, a copy on each; the host gets copies when they are read. A batch is
/// cut into as many parts of equal size as there are replicas; if it is shorter than the prepared batches, the last rows are
/// padding, which does not contribute to any result. Each prepared batch size has a module of its own.
///
/// A training step returns when its batch has been copied: while a call of the module runs on the devices, the arguments of the
/// next one are sent. The host is at most two calls ahead; the sums of loss and metrics lie on the devices until a step_result
/// reads them. step() counts the steps that have been asked for, also those that then fail on the devices.
///
/// Communicator: between processes, each of which has some of the replicas. Sums are formed on the devices; the hosts exchange
/// votes and notice when one of them is lost. A call ends when all processes have begun it. Where a training ends with an error,
/// the others may never do that: its last calls are then given up, instead of waited for.
template <class Program, class Modules, communicator Communicator = detail::alone>
class module_executor : public executor_defaults,
                        public counted_optimizer<typename Program::optimizer>,
                        public collective_operations<module_executor<Program, Modules, Communicator>, Communicator> {
  using operations = collective_operations<module_executor, Communicator>;
  friend operations;
  using operations::among_processes, operations::processes_;
  using group_type = std::remove_cvref_t<decltype(std::declval<operations&>().group())>;
  using connections = typename operations::connections;
  using counted = counted_optimizer<typename Program::optimizer>;
  using T = typename Program::value_type;
  using running_module = detail::running_module;
  using kind = detail::module_kind;
  static constexpr const auto& layout = layout_of_program<Program>;

  module_devices on_;
  philox seed_;
  detail::device_state state_;
  detail::compiled_modules<Program, Modules, group_type> modules_;
  detail::calls_in_flight<connections> calls_;
  detail::host_copies<Program, connections> copies_;
  detail::training_sums<Program> sums_;
  detail::result_reader<Program> results_;
  arena<T> gradient_;  // see keep_gradient

  int together_ = 1;        // steps of a call; see launch_together
  long asked_ = 0;          // steps, of which the last ones are staged
  bool has_error_ = false;  // see announce_error

 public:
  static constexpr executor_traits traits{.freezes = true, .keeps_gradients = true, .has_slots = true};
  using counted::learning_rate, counted::optimizer, counted::set_step, counted::step;
  using operations::communicating, operations::waiting;

  module_executor(typename Program::optimizer o, std::uint64_t seed, module_devices on, Communicator processes = {})
      : counted(std::move(o)),
        operations(std::move(processes)),
        on_(std::move(on)),
        seed_{seed},
        state_(detail::state_places<Program>::count(optimizer().slots()), own_replicas()),
        modules_(optimizer(), on_, operations::group(), own_replicas()),
        calls_(state_, processes_),
        copies_(*on_.client, state_, calls_, optimizer().slots()) {
    initialize_parameters(layout, copies_.parameters(), seed);
  }

  module_executor(module_executor&&) = delete;
  ~module_executor() {
    if constexpr (among_processes)
      if (processes_.size() > 1) calls_.end(!has_error_ && std::uncaught_exceptions() == 0);
  }

  /// The plugin's devices.
  const pjrt::client& client() const { return *on_.client; }
  /// The number of replicas of all processes.
  int replicas() const { return on_.replicas; }
  std::uint64_t seed() const { return seed_.key; }
  /// The rows of a batch that this process reads; empty: all of them.
  row_choice own_rows() const {
    if constexpr (among_processes)
      return [all = on_.replicas, first = on_.client->first_of_all(), own = own_replicas()](int count) {
        const std::int64_t rows = stablehlo::rows_of_replica(count, all);
        return row_range{int(std::min<std::int64_t>(count, first * rows)),
                         int(std::min<std::int64_t>(count, (first + own) * rows))};
      };
    return {};
  }

  std::span<T> parameters() {
    launch();
    return copies_.parameters();
  }
  std::span<const T> parameters() const {
    return const_cast<module_executor*>(this)->parameters();  // no executor is a const object
  }
  /// The optimizer's slots: one array of the layout's trainable size after the other.
  std::span<T> slots() {
    launch();
    return copies_.slots(modules_.slot_types());
  }
  /// Marks the copies that were read as changed by the caller.
  void parameters_changed() { copies_.were_written(); }
  static void drop_rounding_errors() {}
  /// Whether gradient() is kept from the next step on: train_step then waits for the devices.
  [[gnu::cold]] void keep_gradient(bool keep) {
    launch();
    gradient_ = arena<T>(keep ? std::size_t(layout.trainable) : 0);
    modules_.keep_gradient(gradient_.size() > 0);
  }
  /// For each slot of the layout: true if it is frozen from the next step on. Each set of frozen slots has a module of its own.
  [[gnu::cold]] void freeze(std::span<const bool> slots) {
    launch();
    modules_.freeze(slots);
  }
  /// The mean over the samples of the last step, before penalties and clipping, at the places of the layout; 0 before the first
  /// step. Empty if it is not kept.
  std::span<const T> gradient() const { return gradient_.span(); }
  static void observe(kernel_observer* observer) {
    if (observer)
      throw_error(
          "a step of this strategy is one module on a device, whose kernels cannot be observed: profiler and check_numerics need "
          "another strategy, such as one_device");
  }

  /// Compiles the training module of this batch size, if it is new.
  void prepare(int batch, purpose why) { modules_.prepare(batch, why); }

  /// A training step with the global batch. It, or what reads its result or the state, throws pjrt::plugin_error,
  /// communication_error if another process is lost, and strata_error where weights or steps were lost before.
  step_result<Program> train_step(const samples<T>& batch) {
    running_module& step_module = module_for(kind::training, batch);
    if (calls_.staged_for() != &step_module) launch();
    const std::vector<T> step_scalars = Modules::step_scalars(optimizer(), step(), learning_rate());
    detail::host_arguments from = arguments_of(batch);
    from.step_scalars = std::as_bytes(std::span(step_scalars));
    from.random_key = seed_.fork(std::uint64_t(step()) + (1ull << 32)).key;
    calls_.stage(step_module, from);
    set_step(step() + 1);
    const step_result<Program> result(*this, ++asked_);
    const bool keeps_gradient = gradient_.size() > 0;
    if (!keeps_gradient && calls_.staged() < together_) return result;
    launch();
    if constexpr (among_processes) this->exchange_votes();
    if (keeps_gradient) [[unlikely]] {
      calls_.await();
      read_gradient(step_module);
    }
    return result;
  }
  /// See step_result. Begins the steps that are staged.
  metric_sums<Program> sums_of_step(long number) {
    STRATA_TRY {
      return sums_.of_step(number, [this] {
        launch();
        calls_.await();
      });
    }
    STRATA_CATCH_ALL {
      sums_.clear();
      STRATA_THROW_AGAIN;
    }
  }
  /// Where it is faster, n steps are one call, unless something is read before that they change. Until then their batches lie on
  /// the host.
  void launch_together(long n) {
    launch();
    together_ = on_.traits.loops ? int(std::clamp(n, 1L, detail::most_steps_of_launch)) : 1;
  }

  metric_sums<Program> finish() { return {}; }

  /// Announces to the other processes an error with which this program may end; empty: it continues. Steps whose call has not
  /// begun are as if they had not been asked for: the others may never begin it.
  void announce_error(const std::string& what)
    requires among_processes
  {
    has_error_ = !what.empty();
    if (has_error_) drop_staged(0);
    operations::announce_error(what);
  }
  /// This executor if there are several processes, because it needs announce_error(), too.
  auto& group() {
    if constexpr (among_processes)
      return *this;
    else
      return operations::group();
  }
  const auto& group() const {
    if constexpr (among_processes)
      return *this;
    else
      return operations::group();
  }

  /// The sums of loss and metrics of a batch. Throws like train_step.
  metric_sums<Program> evaluate_step(const samples<T>& batch) {
    running_module& m = module_for(kind::evaluation, batch);
    detail::module_call& call = run(m, batch, "an evaluation");
    return results_.sums(m, call);
  }

  /// Writes the predictions for each output, sample by sample. Needs no labels.
  void predict(const samples<T>& batch, const output_rows<T>& out) {
    running_module& m = module_for(kind::prediction, batch);
    detail::module_call& call = run(m, batch, nullptr);
    results_.predictions(m, call, batch.count, out);
  }

 private:  // required by collective_operations for elastic executors, which this is not
  static void prepare_messages(int, purpose) {}
  static void forget_messages() {}
  static void before_admission() {}
  static void after_admission() {}
  static std::array<std::span<std::byte>, 2> lasting_arrays() { return {}; }

  /// The staged steps but the first ones are as if they had not been asked for.
  void drop_staged(int but) {
    set_step(step() - (calls_.staged() - but));
    calls_.clear_staged();
  }
  /// Begins the staged steps. If a call cannot begin, the steps that have not begun are rolled back.
  void launch() {
    const int steps = calls_.staged();
    if (steps == 0) return;
    int begun = 0;
    STRATA_TRY {
      copies_.send(modules_.slot_types());
      if (steps > 1 && steps == together_) {
        begin(modules_.loop_of(*calls_.staged_for(), together_), 0, steps);
        begun = steps;
      }
      for (; begun < steps; ++begun) begin(*calls_.staged_for(), begun, 1);
    }
    STRATA_CATCH_ALL {
      drop_staged(begun);
      calls_.fail_launch();
      STRATA_THROW_AGAIN;
    }
    calls_.end_launch();
  }
  /// A call of a training module with staged steps, after the one before the last has ended.
  void begin(running_module& m, int first, int steps) {
    calls_.await_all_but_last();
    detail::module_call& call = calls_.begin(m, first, steps);
    copies_.are_outdated();
    sums_.add(m, call, asked_ - calls_.staged() + first + 1);
  }
  /// Runs a call of another module to its end; see calls_in_flight.
  detail::module_call& run(running_module& m, const samples<T>& batch, const char* what) {
    launch();
    calls_.await();
    copies_.send(modules_.slot_types());
    return calls_.run(m, arguments_of(batch), what);
  }

  running_module& module_for(kind what, const samples<T>& batch) {
    bool has_weights = false;
    for (int k = 0; k < ends_of_program<Program>.output_count; ++k) has_weights |= batch.truths[k].weights != nullptr;
    return modules_.module_for(what, batch.count, has_weights);
  }
  int own_replicas() const { return among_processes ? on_.client->devices() : on_.replicas; }

  static detail::host_arguments arguments_of(const samples<T>& batch) {
    static constexpr const end_sizes& ends = ends_of_program<Program>;
    detail::host_arguments from;
    from.count = batch.count;
    for (std::size_t k = 0; k < std::size_t(ends.input_count); ++k) from.inputs[k] = batch.inputs[k];
    for (std::size_t k = 0; k < std::size_t(ends.output_count); ++k) {
      const truth_rows<T>& truth = batch.truths[k];
      from.truths[k] = truth.labels ? static_cast<const void*>(truth.labels) : truth.targets;
      from.weights[k] = truth.weights;
    }
    return from;
  }

  [[gnu::cold, gnu::noinline]] void read_gradient(const running_module& m) {
    if (modules_.has_frozen()) std::ranges::fill(gradient_.span(), T(0));  // frozen parameters have no result
    results_.gradient(m, calls_.last(), gradient_.span());
  }
};

}  // namespace strata::core
