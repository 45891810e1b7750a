// The executor of all synchronous strategies: an engine computes leaves of a global batch, processes exchange sums, and leaves
// are added in a fixed binary tree. So the bits of a step depend on the batch alone, not on the number of threads or processes.
#pragma once
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <strata/base/arena.hpp>
#include <strata/base/empty.hpp>
#include <strata/base/error.hpp>
#include <strata/communicators/communication_options.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/concepts/engine.hpp>
#include <strata/exchange/solo_operations.hpp>
#include <strata/exchange/zero/sharding_verdict.hpp>
#include <strata/exchange/zero/zero.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <strata/program/counted_optimizer.hpp>
#include <strata/program/executor.hpp>
#include <strata/program/host_side.hpp>
#include <strata/program/initialize.hpp>
#include <strata/program/leaf_policy.hpp>
#include <strata/program/pass.hpp>
#include <strata/program/refused_divisions.hpp>
#include <strata/program/training_sizes.hpp>
#include <strata/synchronous/whole_state.hpp>
#include <utility>
#include <vector>

namespace strata {

namespace core {
// Defined in among_processes.hpp, which strategies of several processes include.
template <communicator C>
class leaf_exchange;
struct gradient_bucket;
template <class Program, class Backend>
std::vector<gradient_bucket> gradient_buckets(std::size_t bytes_per_pack);
}  // namespace core
namespace detail {
template <class Engine, communicator C>
class process_reduction;
template <class Engine, communicator C, class Sharding>
class sliced_state;
}  // namespace detail

namespace core {
/// Sharding: zero<0>, or the zero<...> that divides the state of a training into slices.
template <class Program, class Backend, communicator Communicator = detail::alone, class Sharding = zero<0>>
class synchronous_executor
    : detail::compiled<Program, Backend>,
      public executor_defaults,
      public counted_optimizer<typename Program::optimizer>,
      public collective_operations<synchronous_executor<Program, Backend, Communicator, Sharding>, Communicator> {
  using operations = collective_operations<synchronous_executor, Communicator>;
  friend operations;
  using counted = counted_optimizer<typename Program::optimizer>;
  using engine_type = typename engine_for<Program, Backend>::type;
  static_assert(detail::diagnosed<typename detail::engine_verdict<engine_type>::type>[0]);
  using T = typename Program::value_type;
  using sums = leaf_sums<Program, Backend>;
  static constexpr const auto& plan = plan_of<Program, Backend>;
  static constexpr const auto& layout = layout_of_program<Program>;
  using operations::among_processes, operations::processes_;
  using typename operations::connections;
  static constexpr bool keeps_slices = among_processes && Sharding::stage > 0;
  static_assert(
      detail::diagnosed<
          typename detail::sharding_verdict<Program, Backend, std::conditional_t<keeps_slices, Sharding, zero<0>>>::type>[0]);
  static constexpr bool defers_sums = engine_type::traits.defers_sums && !among_processes;
  using result_of_step = std::conditional_t<defers_sums, step_result<Program>, metric_sums<Program>>;
  static_assert(!keeps_slices || engine_type::traits.keeps_slices, "zero needs an engine on the host, such as that of the CPU");

  philox seed_;
  communication_options communication_;
  leaf_policy policy_;
  mutable engine_type engine_;  // reading copies from the device
  [[no_unique_address]] mutable detail::host_side<engine_type> host_;
  [[no_unique_address]] std::conditional_t<among_processes, detail::process_reduction<engine_type, connections>, detail::empty>
      reduction_;
  [[no_unique_address]] std::conditional_t<among_processes, leaf_exchange<connections>, detail::empty> exchange_;
  [[no_unique_address]] std::conditional_t<keeps_slices, detail::sliced_state<engine_type, connections, Sharding>,
                                           detail::whole_state> state_;
  std::vector<double> statistics_;                                           // of the whole batch, of one group at a time
  arena<T> gradient_;                                                        // see keep_gradient
  std::optional<global_gradient<T, typename engine_type::device>> reduced_;  // see begin_step

 public:
  using backend = Backend;
  static constexpr executor_traits traits{.freezes = engine_type::traits.freezes,
                                          .keeps_gradients = !keeps_slices,
                                          .has_slots = !keeps_slices,
                                          .collects_slots = keeps_slices,
                                          .keeps_samples = engine_type::traits.keeps_samples};
  using counted::learning_rate, counted::optimizer, counted::set_step, counted::step;
  using operations::communicating, operations::waiting;

  synchronous_executor(typename Program::optimizer o, std::uint64_t seed, typename engine_type::options options = {},
                       Communicator processes = {}, communication_options communication = {})
      : counted(std::move(o)),
        operations(std::move(processes)),
        seed_{seed},
        communication_(communication),
        policy_(leaf_policy_of<Program>(options, operations::first_size(processes_))),
        engine_(options, policy_, keeps_slices ? 0 : optimizer().slots()),
        host_(optimizer().slots()),
        statistics_(sums::statistics) {
    if constexpr (keeps_slices) {
      if (this->is_elastic()) throw_error(zero_is_not_elastic);
      state_ = {processes_, engine_, buckets(), optimizer()};
    }
    // The part of a rank is cut from the initial values of the whole network, by the executor of the ranks.
    if constexpr (std::is_same_v<whole_network_of<typename Program::network>, typename Program::network>)
      initialize_parameters(layout, parameters(), seed);
    parameters_changed();
  }

  /// Adds what the executor of one of how.processes processes allocates to train.
  static constexpr void add_memory(process_memory& to, sizes_of_process how) {
    const int slots = how.slots;
    if constexpr (keeps_slices) how.slots = 0;  // those of the engine are slices
    engine_type::add_memory(to, how);
    if constexpr (among_processes) {
      how.slots = slots;
      long elements = layout.trainable, own = 0;
      if constexpr (engine_type::traits.has_some_layers) elements = engine_type::gradient_elements(how.place);
      if constexpr (keeps_slices) {
        decltype(state_)::add_memory(to, how);
        own = decltype(state_)::own_elements(how.processes);
      } else {
        own = largest_slice(elements, how.processes);
      }
      decltype(reduction_)::add_memory(to, how, elements, keeps_slices && plan.is_cut ? plan.largest_segment() : 0, own,
                                       !keeps_slices);
    }
  }

  /// With zero, throws strata_error if a process was lost while the parameters of a step were exchanged; with zero<3>
  /// also after a step, until finish() or collect_slots().
  std::span<T> parameters() {
    state_.refuse_parts_of_parameters(engine_);
    return host_.parameters(engine_);
  }
  std::span<const T> parameters() const {
    state_.refuse_parts_of_parameters(engine_);
    return host_.parameters(engine_);
  }
  std::span<T> slots()
    requires(!keeps_slices)
  {
    return host_.slots(engine_);
  }
  void parameters_changed() {
    state_.keep_slots(processes_, engine_);
    host_.written(engine_);
  }

  /// With zero, all slots, until the next step or parameters_changed(), which keeps changes to them. Valid after a call of
  /// collect_slots.
  std::span<T> whole_slots()
    requires keeps_slices
  {
    return state_.whole_slots();
  }
  /// All processes call it between the same two steps: the chief gets whole_slots(), or all processes do; and all get
  /// parameters().
  void collect_slots(bool in_all = false)
    requires keeps_slices
  {
    collect_parameters();
    state_.collect_slots(processes_, engine_, in_all);
  }
  /// All processes call it between the same two steps: each sets its slots to 0, and gets parameters().
  void clear_slots()
    requires keeps_slices
  {
    collect_parameters();
    state_.clear_slots(engine_);
  }
  int threads() const { return host_.team(engine_).size(); }
  std::uint64_t seed() const { return seed_.key; }

  /// The rows of a batch that this process reads in train_step and evaluate_step; empty: all of them.
  row_choice own_rows() const {
    if (this->is_elastic()) return {};  // a step that is begun again may be shared by fewer
    if constexpr (among_processes)
      return [policy = policy_, rank = processes_.rank(), size = processes_.size()](int count) {
        return policy.samples_of(count, rank, size);
      };
    return {};
  }

  void observe(kernel_observer* observer) { engine_.observe(observer); }
  /// Sets whether gradient() is kept from the next step on.
  [[gnu::cold]] void keep_gradient(bool keep)
    requires(!keeps_slices)
  {
    gradient_ = arena<T>(keep ? std::size_t(layout.trainable) : 0);
    if (keep) launch_together(1);
  }
  /// The mean over the samples of the last step, before penalties and clipping, at the places of the layout; 0 before the first
  /// step. Empty if it is not kept.
  std::span<const T> gradient() const { return gradient_.span(); }
  void freeze(std::span<const bool> slots)
    requires(engine_type::traits.freezes)
  {
    engine_.freeze(slots);
  }

  /// The threads of this executor, between two steps. Rows are split evenly among them, roughly matching the leaves that each
  /// thread will compute first, so that these are in its cache.
  row_writers writers() const {
    return [team = &host_.team(engine_)](std::size_t count, const auto& write) {
      const std::size_t parts = std::size_t(team->size());
      team->for_tasks(team->size(),
                      [&](int i, int) { write(count * std::size_t(i) / parts, count * std::size_t(i + 1) / parts); });
    };
  }

  /// See resumable_fit. All processes call it between the same two steps.
  void drop_rounding_errors() {
    if constexpr (among_processes) reduction_.drop_rounding_errors();
  }

  /// Makes room for batches of up to `batch` samples.
  void prepare(int batch, purpose why) {
    const int leaves = engine_.prepare(batch, why, processes_.size());
    if (leaves > 0 && this->may_prepare_messages(leaves, why)) prepare_messages(leaves, why);
  }

  result_of_step train_step(const samples<T>& batch) {
    result_of_step out;
    this->together(this->bytes_of(out), [&] { out = try_step(batch); });
    return out;
  }
  /// Where the gradient is kept, each step is launched at once.
  void launch_together([[maybe_unused]] long n) {
    if constexpr (defers_sums) engine_.launch_together(gradient_.size() > 0 ? 1 : n);
  }

  /// train_step in two parts, for an executor whose processes agree in between: the part that sends messages, and the rest of the
  /// update, which sends none. After an error the first part may be repeated.
  metric_sums<Program> begin_step(const samples<T>& batch)
    requires(among_processes && !keeps_slices)
  {
    begin(purpose::training, batch);
    compute_gradients();
    reduced_ = reduce(batch.count);
    refuse_other_batches(batch.count);
    engine_.take_gradient_norms(optimizer(), *reduced_);
    return add_metric_sums(engine_);
  }
  void end_step()
    requires(among_processes && !keeps_slices)
  {
    update_by(*reduced_, learning_rate());
  }
  /// Called between the two parts: afterwards end_step() no longer needs the memory for messages.
  [[gnu::cold]] void keep_reduced_gradient()
    requires(among_processes && !keeps_slices)
  {
    if constexpr (engine_type::traits.has_some_layers)
      reduction_.keep_sum(engine_.gradient_elements());
    else
      reduction_.keep_sum(layout.trainable);
  }

  metric_sums<Program> finish() {
    collect_parameters();
    return {};
  }

  /// Copies a data set to the devices of this process; returns false if it does not fit. Until release_samples() a batch may be
  /// the indices of its samples.
  bool keep_samples(const stored_samples& set)
    requires(traits.keeps_samples)
  {
    return engine_.keep_samples(set);
  }
  void release_samples()
    requires(traits.keeps_samples)
  {
    engine_.release_samples();
  }

  metric_sums<Program> evaluate_step(const samples<T>& batch) {
    metric_sums<Program> out;
    collect_parameters();
    this->together(this->bytes_of(out), [&] {
      begin(purpose::inference, batch);
      engine_.measure();
      this->announce_operation();
      exchange_sums("metrics");
      refuse_other_batches(batch.count);
      out = add_metric_sums(engine_);
    });
    return out;
  }

  /// Writes the predictions for each output, sample by sample. Needs no labels.
  void predict(const samples<T>& batch, const output_rows<T>& out) {
    state_.refuse_parts_of_parameters(engine_);
    begin(purpose::inference, batch);
    engine_.predict(out);
  }

 protected:
  engine_type& engine() const { return engine_; }

 private:
  void prepare_messages([[maybe_unused]] int leaves, [[maybe_unused]] purpose why) {
    if constexpr (among_processes) {
      exchange_.prepare(processes_, sums::size, leaves);
      if (why == purpose::inference) return;
      engine_.share_among(processes_.size());  // shares may be larger than before
      reduction_.prepare(
          processes_, engine_, buckets(), leaves,
          {.rounds = communication_.bf16_gradients, .gathers = !keeps_slices, .in_windows = keeps_slices && plan.is_cut});
      state_.prepare_messages(processes_);
    }
  }

  auto buckets() const {
    if constexpr (engine_type::traits.has_some_layers)
      return std::vector<gradient_bucket>{{0, engine_.gradient_elements()}};
    else
      return gradient_buckets<Program, Backend>(communication_.bytes_per_pack);
  }

  void forget_messages() { exchange_ = {}, reduction_ = {}; }
  static void before_admission() {}
  static void after_admission() {}
  std::array<std::span<std::byte>, 2> lasting_arrays() {
    if constexpr (keeps_slices)
      return {};  // it is not elastic
    else
      return {std::as_writable_bytes(parameters()), std::as_writable_bytes(slots())};
  }

  /// Changes no persistent state before the last message has arrived, so that it can be repeated.
  result_of_step try_step(const samples<T>& batch) {
    state_.divide_parameters(engine_);
    begin(purpose::training, batch);
    const double rate = learning_rate();
    if constexpr (engine_type::traits.updates_at_once && !among_processes && (defers_sums || !plan.needs_whole_leaf()))
      if (gradient_.size() == 0 && engine_.updates_at_once(optimizer())) return train_at_once(rate);
    compute_gradients();
    const auto gradient = reduce(batch.count);
    refuse_other_batches(batch.count);
    update_by(gradient, rate);
    return add_metric_sums(engine_);
  }
  /// The engine does the whole step.
  result_of_step train_at_once(double rate) {
    const auto at_once = [&] { return engine_.train_at_once(optimizer(), step(), rate, whole_batch_reduction{}); };
    if constexpr (defers_sums) {
      const result_of_step out = at_once();
      end_update();
      return out;
    } else {
      at_once();
      end_update();
      return add_metric_sums(engine_);
    }
  }
  void update_by(const global_gradient<T, typename engine_type::device>& gradient, double rate) {
    update(rate, gradient);
    if constexpr (plan.needs_whole_leaf()) engine_.update_state();
    end_update();
  }
  void end_update() {
    host_.updated();
    set_step(step() + 1);
  }
  void update(double rate, const global_gradient<T, typename engine_type::device>& gradient) {
    if constexpr (keeps_slices) {
      state_.update(processes_, engine_, optimizer(), step(), rate, gradient);
    } else {
      if (gradient_.size() > 0) [[unlikely]]
        host_.read_gradient(engine_, gradient, gradient_.span());
      engine_.update(optimizer(), step(), rate, gradient);
    }
  }

  /// With zero<3>, a collective call between two steps.
  void collect_parameters() {
    if (state_.collect_parameters(processes_, engine_)) host_.written(engine_);
  }

  void begin(purpose why, const samples<T>& batch) {
    engine_.begin(why, batch, seed_.fork(std::uint64_t(step()) + (1ull << 32)), processes_.rank(), processes_.size());
  }

  /// Segment by segment: statistics of the whole batch are summed between two. Gradients are sent while others are being
  /// computed.
  void compute_gradients() {
    constexpr int last = plan.segment_count - 1;
    if constexpr (among_processes) reduction_.begin(processes_, engine_);
    if constexpr (plan.is_cut) return compute_in_segments();
    for (int k = 0; k < last; ++k) {
      engine_.forward(k);
      exchange_sums("statistics");
      sum_statistics(k + 1, 0);
    }
    if constexpr (among_processes)
      engine_.forward_backward([&](int group) { reduction_.passed(processes_, group); });
    else
      engine_.forward_backward(detail::no_callback{});
    for (int k = last; k > 0; --k) {
      exchange_sums("statistics of the gradients");
      sum_statistics(k, 1);
      // Sent after the statistics; otherwise these would queue behind the gradients.
      if constexpr (among_processes) reduction_.advance(processes_, host_, engine_, plan.first_of_segment[k] + 1);
      engine_.backward(k - 1);
    }
  }

  /// If the plan is cut, gradients are reduced segment by segment, because the next one overwrites them. With zero<3> the
  /// parameters of one segment are fetched while another one is computed.
  void compute_in_segments() {
    constexpr int last = plan.segment_count - 1;
    state_.fetch(processes_, 0);
    for (int k = 0; k < last; ++k) {
      state_.await(processes_, engine_, k);
      state_.fetch(processes_, k + 1);
      engine_.forward(k);
    }
    state_.await(processes_, engine_, last);
    engine_.forward_backward(detail::no_callback{});
    for (int k = last;; --k) {
      if constexpr (among_processes) reduction_.advance(processes_, host_, engine_, plan.first_of_segment[k]);
      if (k == 0) break;
      if (k < last) state_.await_again(processes_, k - 1);
      if (k > 1) state_.fetch(processes_, k - 2);
      engine_.backward(k - 1);
    }
  }

  /// The sum over the leaves of all processes. Metric sums travel along.
  global_gradient<T, typename engine_type::device> reduce(long samples) {
    if constexpr (among_processes) {
      reduction_.advance(processes_, host_, engine_);
      begin_exchange();
      this->send_votes();
      const auto gradient = reduction_.finish(processes_, host_, engine_, samples);
      finish_exchange();
      this->receive_votes();
      return gradient;
    } else {
      return whole_batch_reduction::reduce(engine_.gradients(), samples);
    }
  }

  /// Metric sums and statistics of the leaves of all processes.
  void exchange_sums([[maybe_unused]] const char* what) {
    if constexpr (among_processes) {
      begin_exchange();
      processes_.wait(what);
      finish_exchange();
    }
  }
  void begin_exchange() {
    exchange_.begin(processes_, engine_.leaves(), sums::size, [&](int l) { return engine_.sums(l); });
  }
  void finish_exchange() {
    exchange_.finish(processes_, engine_.leaves(), sums::size, [&](int l) { return engine_.sums(l); });
  }

  template <class F>
  double tree(F&& value) {
    return sum_in_tree(value, 0, engine_.leaves());
  }

  /// Detects batches that differ, as far as the number of samples shows it.
  void refuse_other_batches([[maybe_unused]] int count) {
    if constexpr (among_processes) {
      const double computed = tree([&](int l) { return engine_.sums(l)[sums::statistics + 1]; });
      if (computed != count) detail::refuse_other_batches(count, long(computed));
    }
  }

  /// Between two segments: the statistics of the group that opens the second one, added in the same tree.
  void sum_statistics(int segment, int direction) {
    const kernel_group& g = plan.groups[plan.first_of_segment[segment]];
    const int first = g.statistics + direction * g.kernel.statistics;
    const std::span<double> values(statistics_.data(), std::size_t(g.kernel.statistics));
    for (int i = 0; i < g.kernel.statistics; ++i)
      values[std::size_t(i)] = tree([&](int l) { return engine_.sums(l)[first + i]; });
    engine_.set_statistics(first, values);
  }
};
}  // namespace core

}  // namespace strata
