// The executor of strategies whose step is one module that a PJRT plugin runs, on one device or on several replicas.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <strata/base/arena.hpp>
#include <strata/base/error.hpp>
#include <strata/base/exceptions.hpp>
#include <strata/base/random.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/distribute/counted_optimizer.hpp>
#include <strata/distribute/executor.hpp>
#include <strata/distribute/lost_steps.hpp>
#include <strata/distribute/synchronous/solo_operations.hpp>
#include <strata/distribute/without_totals.hpp>
#include <strata/program/initialize.hpp>
#include <strata/program/metric_sums.hpp>
#include <strata/program/program.hpp>
#include <strata/xla/calls_in_flight.hpp>
#include <strata/xla/choose_devices.hpp>
#include <strata/xla/compiled_modules.hpp>
#include <strata/xla/module.hpp>
#include <strata/xla/pjrt/client.hpp>
#include <strata/xla/pjrt/copies_to_host.hpp>
#include <strata/xla/running_module.hpp>
#include <strata/xla/state_places.hpp>
#include <strata/xla/unread_sums.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata {

/// Parameters and the optimizer's state lie on the devices, a copy on each; the host has copies of them when they are read. A
/// batch is cut into as many parts of equal size as there are replicas; where it is shorter than the batches that were prepared,
/// the last rows are padding, which counts for nothing. Each size of batch that is prepared is a module of its own.
///
/// Between begin_totals and end_totals a training step returns when its batch has been copied: while a call of the module runs on
/// the devices, the arguments of the next one are sent. The host is at most two calls ahead; the sums of loss and metrics lie on
/// the devices until totals() asks for them. step() counts the steps that have been asked for, also those that then fail on the
/// devices.
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
  using counted = counted_optimizer<typename Program::optimizer>;
  using T = typename Program::value_type;
  using running_module = detail::running_module;
  using kind = detail::module_kind;
  using places = detail::state_places<Program>;
  static constexpr const auto& layout = layout_of_program<Program>;
  static constexpr std::size_t max_unread = 256;  // calls
  static constexpr long max_together = 1024;      // steps
  struct copy {
    arena<T> values;
    bool is_valid = true;    // equal to what the devices have
    bool is_written = true;  // the devices do not have it yet
  };

  module_devices on_;
  philox seed_;
  detail::device_state state_;
  copy parameters_, slots_;
  std::vector<pjrt::event> reading_;  // copies to the host
  detail::compiled_modules<Program, Modules, group_type> modules_;
  arena<T> gradient_;  // see keep_gradient

  detail::calls_in_flight<typename operations::connections> calls_;
  detail::unread_sums<Program> unread_;  // of the calls that totals_ lacks
  bool keeps_totals_ = false;
  totals_of_steps<Program> totals_;
  long steps_of_totals_ = 0;
  int together_ = 1;              // steps of a call; see read_totals_every
  int exceptions_at_totals_ = 0;  // that were on their way at begin_totals
  bool has_error_ = false;        // see announce_error
  detail::unread_sums<Program> evaluated_;
  detail::lost_steps lost_steps_;  // see end_totals

 public:
  using counted::learning_rate, counted::optimizer, counted::set_step, counted::step;
  using operations::communicating, operations::waiting;

  module_executor(typename Program::optimizer o, std::uint64_t seed, module_devices on, Communicator processes = {})
      : counted(std::move(o)),
        operations(std::move(processes)),
        on_(std::move(on)),
        seed_{seed},
        state_(places::count(optimizer().slots()), own_replicas()),
        parameters_{arena<T>(std::size_t(layout.size))},
        slots_{arena<T>(std::size_t(layout.trainable) * std::size_t(optimizer().slots()))},
        modules_(optimizer(), on_, operations::group(), own_replicas()),
        calls_(state_, processes_) {
    initialize_parameters(layout, parameters_.values.span(), seed);
  }

  module_executor(module_executor&&) = delete;
  ~module_executor() {
    if constexpr (among_processes)
      if (processes_.size() > 1) calls_.end(!has_error_ && std::uncaught_exceptions() == 0);
  }

  /// The plugin's devices.
  const pjrt::client& client() const { return *on_.client; }
  /// Of all processes.
  int replicas() const { return on_.replicas; }
  std::uint64_t seed() const { return seed_.key; }
  /// The rows of a batch that this process looks at; empty: all of them.
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
    return read(parameters_, [this](const auto& f) { this->each_parameter(f); });
  }
  std::span<const T> parameters() const {
    return const_cast<module_executor*>(this)->parameters();  // no executor is a const object
  }
  /// What the optimizer keeps: one array of the layout's trainable size after the other.
  std::span<T> slots() {
    launch();
    return read(slots_, [this](const auto& f) { this->each_slot(f); });
  }
  /// The spans that were read may have been written to.
  void parameters_changed() {
    parameters_.is_written = parameters_.is_valid;
    slots_.is_written = slots_.is_valid;
  }
  static void drop_rounding_errors() {}
  /// Whether gradient() is kept from the next step on: train_step then waits for the devices, also after begin_totals.
  [[gnu::cold]] void keep_gradient(bool keep) {
    launch();
    gradient_ = arena<T>(keep ? std::size_t(layout.trainable) : 0);
    modules_.keep_gradient(gradient_.size() > 0);
  }
  /// For each slot of the layout whether it is frozen from the next step on. Each set of frozen slots is a module of its own.
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

  /// A training step with the global batch. Returns its sums, or between begin_totals and end_totals none. Throws
  /// pjrt::plugin_error, communication_error if another process is lost, and strata::error where weights or steps were lost
  /// before.
  metric_sums<Program> train_step(const samples<T>& batch) {
    lost_steps_.report();
    if (!keeps_totals_) unread_.clear();  // of a step whose sums could not be read
    running_module& step_module = module_for(kind::training, batch);
    if (calls_.staged_for() != &step_module) launch();
    const std::vector<T> step_scalars = Modules::step_scalars(optimizer(), step(), learning_rate());
    detail::host_arguments from = arguments_of(batch);
    from.step_scalars = std::as_bytes(std::span(step_scalars));
    from.random_key = seed_.fork(std::uint64_t(step()) + (1ull << 32)).key;
    calls_.stage(step_module, from);
    set_step(step() + 1);
    const bool keeps_gradient = gradient_.size() > 0;
    if (keeps_totals_ && !keeps_gradient && calls_.staged() < together_) return {};
    launch();
    if constexpr (among_processes) this->exchange_votes();
    if (keeps_totals_ && !keeps_gradient) return {};
    calls_.await();
    if (keeps_gradient) [[unlikely]]
      read_gradient(step_module);
    if (keeps_totals_) return {};
    metric_sums<Program> sums{};
    unread_.read(unread_.size(), [&](const metric_sums<Program>& of_step) { sums = of_step; });
    return sums;
  }

  /// The same also between begin_totals and end_totals. Its sums do not belong to the totals.
  metric_sums<Program> train_apart(const samples<T>& batch) {
    if (!keeps_totals_) return train_step(batch);
    totals();
    const detail::without_totals apart(keeps_totals_, lost_steps_, [] {});  // a step without totals is launched at once
    return train_step(batch);
  }

  metric_sums<Program> finish() { return {}; }

  /// Between begin_totals and end_totals, totals() is asked for after every n steps: where that is faster, they are one call.
  /// Their batches then lie on the host until the last one has come.
  void read_totals_every(long n) { together_ = on_.traits.loops ? int(std::clamp(n, 1L, max_together)) : 1; }
  /// From now on train_step returns no sums, and does not wait for the devices, until end_totals(). Returns false where the
  /// gradient is kept, which is that of each step.
  bool begin_totals(const metric_sums<Program>& so_far) {
    totals_ = {.sums = so_far};
    steps_of_totals_ = 0;
    unread_.clear();
    exceptions_at_totals_ = std::uncaught_exceptions();
    return keeps_totals_ = gradient_.size() == 0;
  }
  /// Waits for the steps so far.
  totals_of_steps<Program> totals() {
    launch();
    calls_.await();
    add_to_totals(unread_.size());
    return totals_;
  }
  /// Steps whose call has not begun are begun; but where an exception ends an epoch of several processes, they are as if they had
  /// not been asked for: the others may never begin them. If a call cannot begin, the next step, or what asks for the state
  /// first, throws that error, once.
  void end_totals() {
    if (among_processes && std::uncaught_exceptions() > exceptions_at_totals_) {
      set_step(step() - calls_.staged());
      calls_.clear_staged();
    }
    lost_steps_.keep_error_of([this] { launch(); });
    keeps_totals_ = false;
    unread_.clear();
  }

  /// Tells the others about an error with which this program may end; empty: it goes on.
  void announce_error(const std::string& what)
    requires among_processes
  {
    has_error_ = !what.empty();
    operations::announce_error(what);
  }
  /// Where there are several processes, this executor: it has to know about errors, too.
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
    metric_sums<Program> sums{};
    for (std::size_t i = 0; i < m.results().size(); ++i)
      if (const stablehlo::argument& r = m.results()[i]; r.what == stablehlo::role::sums) {
        evaluated_.clear();
        evaluated_.add(std::move(call.result(i, 0)), r.type);
        evaluated_.read(1, [&](const metric_sums<Program>& of_batch) { sums = of_batch; });
      }
    return sums;
  }

  /// For each output the predictions of each sample, row after row. Labels are not needed.
  void predict(const samples<T>& batch, const output_rows<T>& out) {
    running_module& m = module_for(kind::prediction, batch);
    detail::module_call& call = run(m, batch, nullptr);
    std::vector<std::byte> rows;
    for (std::size_t i = 0; i < m.results().size(); ++i) {
      const stablehlo::argument& result = m.results()[i];
      if (result.what != stablehlo::role::prediction) continue;
      const std::size_t bytes = result.type.bytes(), of_row = bytes / std::size_t(m.rows());
      std::byte* to = reinterpret_cast<std::byte*>(out.at[result.index]);
      for (int r = 0, left = batch.count; left > 0; ++r, left -= m.rows()) {
        const std::size_t own = std::size_t(std::min(left, m.rows())) * of_row;
        if (own < bytes) rows.resize(bytes);
        pjrt::copies_to_host copies(reading_);
        copies.begin(call.result(i, r), result.type, own < bytes ? std::span(rows) : std::span(to, bytes));
        copies.wait("read the predictions");
        if (own < bytes) std::copy_n(rows.data(), own, to);
        to += own;
      }
    }
  }

 private:  // what collective_operations needs of an elastic executor; this one never is
  static void prepare_messages(int, purpose) {}
  static void forget_messages() {}
  static void before_admission() {}
  static void after_admission() {}
  static std::array<std::span<std::byte>, 2> lasting_arrays() { return {}; }

  /// Begins the steps that are staged. If a call cannot begin, they are as if they had not been asked for.
  void launch() {
    lost_steps_.report();
    const int steps = calls_.staged();
    if (steps == 0) return;
    int begun = 0;
    STRATA_TRY {
      write_state();
      if (steps > 1 && steps == together_) {
        begin(modules_.loop_of(*calls_.staged_for(), together_), 0, steps);
        begun = steps;
      }
      for (; begun < steps; ++begun) begin(*calls_.staged_for(), begun, 1);
    }
    STRATA_CATCH_ALL {
      set_step(step() - (steps - begun));
      calls_.fail_launch();
      STRATA_THROW_AGAIN;
    }
    calls_.end_launch();
  }
  /// A call of a training module with staged steps, after the one before the last has ended.
  void begin(running_module& m, int first, int steps) {
    calls_.await_all_but_last();
    if (unread_.size() == max_unread) add_to_totals(max_unread - 1);  // all of them have ended but one
    detail::module_call& call = calls_.begin(m, first, steps);
    parameters_.is_valid = slots_.is_valid = false;
    for (std::size_t i = 0; i < m.results().size(); ++i)
      if (const stablehlo::argument& r = m.results()[i]; r.what == stablehlo::role::sums)
        unread_.add(std::move(call.result(i, 0)), r.type);
  }
  /// A call of another module, to its end; see calls_in_flight.
  detail::module_call& run(running_module& m, const samples<T>& batch, const char* what) {
    launch();
    calls_.await();
    write_state();
    return calls_.run(m, arguments_of(batch), what);
  }

  running_module& module_for(kind what, const samples<T>& batch) {
    bool has_weights = false;
    for (int k = 0; k < ends_of_program<Program>.output_count; ++k) has_weights |= batch.truths[k].weights != nullptr;
    return modules_.module_for(what, batch.count, has_weights);
  }
  int own_replicas() const { return among_processes ? on_.client->devices() : on_.replicas; }

  /// f(number in the state, type, elements of the copy on the host)
  void each_parameter(const auto& f) {
    for (std::size_t i = 0; i < places::of_arena; ++i) {
      const parameter_slot& p = layout.slots[i];
      stablehlo::tensor_type type{stablehlo::element_of<T>, {}};
      for (int d = 0; d < p.what.extents.rank(); ++d) type.extents.push_back(p.what.extents[d]);
      f(i, type, parameters_.values.data() + p.offset);
    }
  }
  void each_slot(const auto& f) {
    const std::span<const stablehlo::tensor_type> types = modules_.slot_types();
    for (std::size_t i = 0; i < types.size(); ++i)
      if (const parameter_slot& p = layout.slots[i % places::of_arena]; p.what.trainable)
        f(places::of_arena + i, types[i], slots_.values.data() + long(i / places::of_arena) * layout.trainable + p.offset);
  }

  std::span<T> read(copy& to, const auto& each) {
    if (!to.is_valid) {
      calls_.await();
      refuse_lost_state();
      pjrt::copies_to_host copies(reading_);
      each([&](std::size_t place, const stablehlo::tensor_type& type, T* values) {
        copies.begin(state_.at(place, 0), type, {reinterpret_cast<std::byte*>(values), type.bytes()});
      });
      copies.wait("read the weights");
      to.is_valid = true;
    }
    return to.values.span();
  }

  void refuse_lost_state() const {
    if (state_.is_lost)
      throw_error(
          "the weights are lost: the last training step failed on the device while it changed them. Make a new trainer, and "
          "load what was saved");
  }
  void write_state() {
    refuse_lost_state();
    write(parameters_, [this](const auto& f) { this->each_parameter(f); });
    if (!modules_.slot_types().empty()) write(slots_, [this](const auto& f) { this->each_slot(f); });
  }
  void write(copy& from, const auto& each) {
    if (!from.is_written) return;
    calls_.await();
    each([&](std::size_t place, const stablehlo::tensor_type& type, const T* values) {
      for (int r = 0; r < own_replicas(); ++r)
        state_.at(place, std::size_t(r)) =
            on_.client->upload({reinterpret_cast<const std::byte*>(values), type.bytes()}, type, r);
    });
    from.is_written = false;  // after an error the next call sends all of them again
  }

  detail::host_arguments arguments_of(const samples<T>& batch) const {
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
    for (std::size_t i = 0; i < m.results().size(); ++i)
      if (const stablehlo::argument& result = m.results()[i]; result.what == stablehlo::role::gradient) {
        T* const to = gradient_.data() + layout.slots[result.index].offset;
        pjrt::copies_to_host copies(reading_);
        copies.begin(calls_.last().result(i, 0), result.type, {reinterpret_cast<std::byte*>(to), result.type.bytes()});
        copies.wait("read the gradient");
      }
  }

  void add_to_totals(std::size_t calls) {
    unread_.read(calls, [this](const metric_sums<Program>& of_step) {
      for (std::size_t k = 0; k < of_step.size(); ++k) totals_.sums[k] += of_step[k];
      ++steps_of_totals_;
      totals_.last_loss = of_step[0].mean();
      if (totals_.first_bad_step == 0 && !std::isfinite(totals_.last_loss)) totals_.first_bad_step = steps_of_totals_;
    });
  }
};

}  // namespace strata
