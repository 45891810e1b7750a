// The executor of all synchronous strategies: a global batch is cut into leaves, whoever computes them, and leaves are added
// in a fixed binary tree. So the bits of a step depend on the batch alone, not on the number of threads.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <strata/concepts/communicator.hpp>
#include <strata/distribute/communication_options.hpp>
#include <strata/distribute/leaves/batch_leaves.hpp>
#include <strata/distribute/synchronous/collective_operations.hpp>
#include <strata/distribute/synchronous/gradient_buckets.hpp>
#include <strata/distribute/synchronous/tree_reduction.hpp>
#include <strata/program/initialize.hpp>
#include <vector>

namespace strata {

template <class Program, class Backend, communicator Communicator = alone>
class synchronous_executor : compiled<Program, Backend>,
                             batch_leaves<Program, Backend>,
                             public collective_operations<synchronous_executor<Program, Backend, Communicator>, Communicator> {
  using operations = collective_operations<synchronous_executor, Communicator>;
  friend operations;
  using base = batch_leaves<Program, Backend>;
  using T = typename Program::value_type;
  using optimizer_type = typename Program::optimizer;
  static constexpr const auto& plan = plan_of<Program, Backend>;
  using base::layout, base::trained, base::team_, base::training_, base::leaves_, base::now_;
  using base::own_, base::inference, base::leaf_count, base::share, base::in_micro_batches, base::tree, base::tally_up;
  using typename base::sums, typename base::training_pass;
  using typename operations::connections, typename operations::nothing;
  using operations::among_processes, operations::processes_;

  optimizer_type optimizer_;
  philox seed_;
  communication_options communication_;
  [[no_unique_address]] std::conditional_t<among_processes, tree_reduction<T, connections>, nothing> reduction_;
  [[no_unique_address]] std::conditional_t<among_processes, leaf_exchange<connections>, nothing> exchange_;
  arena<T> weights_, slots_;
  arena<double> statistics_, norms_;
  T* sum_ = nullptr;  // of the gradients of all processes
  long step_ = 0;

 public:
  using backend = Backend;

  synchronous_executor(optimizer_type o, std::uint64_t seed, compute_options options = {}, Communicator processes = {},
                       communication_options communication = {})
      : base(options, operations::first_size(processes)),
        operations(std::move(processes)),
        optimizer_(std::move(o)),
        seed_{seed},
        communication_(communication),
        weights_(std::size_t(layout.size)),
        slots_(std::size_t(layout.trainable) * std::size_t(optimizer_.slots())),
        statistics_(sums::statistics),
        norms_(std::size_t(weight_update<T, optimizer_type>::piece_count(trained.span()))) {
    initialize_parameters(layout, weights_.span(), seed);
  }

  std::span<T> parameters() { return weights_.span(); }
  std::span<T> slots() { return slots_.span(); }
  void parameters_changed() { this->weights_changed(); }
  optimizer_type& optimizer() { return optimizer_; }
  /// Updates so far: the counter of random numbers and schedules.
  long step() const { return step_; }
  void set_step(long step) { step_ = step; }
  int threads() const { return team_->size(); }
  std::uint64_t seed() const { return seed_.key; }

  /// The rows of a batch that this process looks at in train_step and evaluate_step; empty: all of them.
  row_choice own_rows() const {
    if (this->is_elastic()) return {};  // a step that is begun again may be shared by fewer
    if constexpr (among_processes)
      return [divide = this->divide_, rank = processes_.rank(), size = processes_.size()](int count) {
        return base::samples_of(divide, count, rank, size);
      };
    return {};
  }

  /// The threads of this executor, between two steps. All write equally many rows, each about those of the leaves that it begins
  /// with: they are in its cache then.
  row_writers writers() const {
    return [team = team_.get()](std::size_t count, const auto& write) {
      const std::size_t parts = std::size_t(team->size());
      team->for_tasks(team->size(), [&](int i, int) { write(count * std::size_t(i) / parts, count * std::size_t(i + 1) / parts); });
    };
  }

  /// Between two steps, in all processes: the next ones depend on parameters, slots and the step alone.
  void forget_rounding() {
    if constexpr (among_processes) reduction_.forget_rounding();
  }

  /// Makes room for batches of up to so many samples.
  void prepare(int batch, purpose why) {
    const int leaves = this->make_room(batch, why, processes_.size());
    if (leaves > 0 && this->may_prepare_messages(leaves, why)) prepare_messages(leaves, why);
  }

  tallies<Program> train_step(samples<T> batch) {
    tallies<Program> out;
    this->together(this->bytes_of(out), [&] { out = try_step(batch); });
    return out;
  }

  tallies<Program> finish() { return {}; }

  tallies<Program> evaluate_step(samples<T> batch) {
    tallies<Program> out;
    this->together(this->bytes_of(out), [&] {
      const step_context<T> context = begin(inference(), batch.count);
      this->penalize(weights_.data());
      for_own_leaves([&](int l, int rank) { this->measure_leaf(l, rank, context, batch); });
      this->say_begun();
      exchange_sums("metrics");
      refuse_other_batches(batch.count);
      out = tally_up();
    });
    return out;
  }

  /// Predictions of each sample, row after row. Labels are not needed.
  void predict(samples<T> batch, T* out) {
    this->predict_all(begin(inference(), batch.count), batch, out);
  }

 private:
  void prepare_messages([[maybe_unused]] int leaves, [[maybe_unused]] purpose why) {
    if constexpr (among_processes) {
      exchange_.prepare(processes_, sums::size, leaves);
      if (why == purpose::inference) return;
      this->make_room_for_shares(processes_.size());  // which may be larger than before
      reduction_.prepare(processes_, gradient_buckets<Program, Backend>(communication_.bytes_per_pack), leaves,
                         communication_.bf16_gradients);
    }
  }

  void forget_messages() { exchange_ = {}, reduction_ = {}; }
  std::array<std::span<std::byte>, 2> lasting_arrays() {
    return {std::as_writable_bytes(weights_.span()), std::as_writable_bytes(slots_.span())};
  }

  /// Nothing that lasts has changed before the last message has come, so that it may be begun again.
  tallies<Program> try_step(samples<T> batch) {
    const step_context<T> context = begin(training_, batch.count);
    this->penalize(weights_.data());
    if constexpr (!plan.needs_whole_leaf())
      if (updates_at_once(batch.count)) return step_at_once(context, batch);
    if constexpr (plan.needs_whole_leaf()) {
      whole_leaves(context, batch);
    } else {
      begin_sum();
      for_own_leaves([&](int l, int rank) {
        if constexpr (among_processes) {
          this->micro_batches(l, rank, context, batch, [&](int group) { reduction_.passed(processes_, group); });
          if (share(l, batch).count == 0) reduction_.passed_all(processes_);
        } else {
          this->micro_batches(l, rank, context, batch);
        }
      });
    }
    const double rate = optimizer_.learning_rate(step_);
    const std::span<T* const> gradients = gather_gradients();
    refuse_other_batches(batch.count);
    optimizer_.template with_rule<T>(step_, rate, [&](const auto& rule) { update(rule, gradients, T(1) / T(batch.count), rate); });
    if constexpr (plan.needs_whole_leaf()) update_state(context, batch);
    parameters_changed();
    ++step_;
    return tally_up();
  }

  step_context<T> begin(auto& prepared, int count) {
    return base::begin(prepared, weights_.data(), statistics_.data(), count, seed_.fork(std::uint64_t(step_) + (1ull << 32)),
                       processes_.rank(), processes_.size());
  }

  template <class F>
  void for_own_leaves(F&& f) {
    team_->for_tasks(own_.size(), [&](int i, int rank) { f(own_.begin + i, rank); });
  }

  /// Tallies and statistics of the leaves of all processes.
  void exchange_sums([[maybe_unused]] const char* what) {
    if constexpr (among_processes) {
      const auto numbers = [&](int l) { return leaves_[std::size_t(l)].all(); };
      exchange_.begin(processes_, leaf_count(), sums::size, numbers);
      processes_.wait(what);
      exchange_.finish(processes_, leaf_count(), sums::size, numbers);
    }
  }

  /// As far as the number of samples tells.
  void refuse_other_batches(int count) const {
    if constexpr (among_processes) {
      const double computed = tree([&](int l) { return const_cast<sums&>(leaves_[std::size_t(l)]).tally_at(0)[1]; });
      if (computed != count)
        throw error("the processes do not read the same batches: here is one of " + std::to_string(count) +
                    " samples, of which all together have computed " + std::to_string(long(computed)));
    }
  }

  /// Gradients are sent while others are being computed.
  void begin_sum() {
    if constexpr (among_processes) reduction_.begin(processes_, this->own_gradients(), leaf_count());
  }

  /// What the update adds up: the gradients of all leaves, or what the processes have added up already. Tallies travel along.
  std::span<T* const> gather_gradients() {
    if constexpr (among_processes) {
      reduction_.advance(processes_, *team_);
      const auto numbers = [&](int l) { return leaves_[std::size_t(l)].all(); };
      exchange_.begin(processes_, leaf_count(), sums::size, numbers);
      this->say_wishes();
      sum_ = reduction_.finish(processes_, *team_);
      exchange_.finish(processes_, leaf_count(), sums::size, numbers);
      this->hear_wishes();
      return {&sum_, 1};
    }
    return {this->own_gradients(), std::size_t(leaf_count())};
  }

  /// Segment by segment: statistics of the whole batch are summed between two.
  void whole_leaves(const step_context<T>& context, const samples<T>& batch) {
    const auto for_leaves = [&](int segment, auto&& f) {
      for_own_leaves([&](int l, int rank) {
        const long start = long(l) * now_.capacity;
        in_micro_batches(training_, l, batch, segment, [&](samples<T> some, long first) {
          training_pass pass(context, training_.work_of(rank, l - own_.begin), leaves_[std::size_t(l)], some, first,
                             int(first - start));
          f(pass, first > start);
        });
      });
    };
    for (int l = own_.begin; l < own_.end; ++l) {
      leaves_[std::size_t(l)].clear_sums();
      if (share(l, batch).count == 0) leaves_[std::size_t(l)].clear_gradient();
    }
    begin_sum();
    const int last = plan.segment_count - 1;
    for (int k = 0; k < last; ++k) {
      for_leaves(k, [&](auto& pass, bool) { pass.forward(k); });
      exchange_sums("statistics");
      sum_statistics(k + 1, 0);
    }
    for_leaves(last, [&](auto& pass, bool adds) {
      pass.forward(last);
      pass.measure();
      pass.backward(last, adds);
    });
    for (int k = last; k > 0; --k) {
      exchange_sums("statistics of the gradients");
      sum_statistics(k, 1);
      // Only now, or the statistics would wait behind the gradients.
      if constexpr (among_processes) reduction_.advance(processes_, *team_, plan.first_of_segment[k] + 1);
      for_leaves(k - 1, [&](auto& pass, bool adds) { pass.backward(k - 1, adds); });
    }
  }

  /// Between two segments: the statistics of the group that opens the second one, added in the same tree.
  void sum_statistics(int segment, int direction) {
    const group& g = plan.groups[plan.first_of_segment[segment]];
    const int begin = g.statistics + direction * g.kernel.statistics;
    for (int i = begin; i < begin + g.kernel.statistics; ++i)
      statistics_[std::size_t(i)] = tree([&](int l) { return *leaves_[std::size_t(l)].statistics_at(i); });
  }

  void update_state(const step_context<T>& context, const samples<T>& batch) {
    for (int k = 1; k < plan.segment_count; ++k) {
      const int g = plan.first_of_segment[k];
      training_pass(context, training_.work_of(0), leaves_[0], batch, 0).update_state(g, weights_.data());
    }
  }

  /// One leaf, one micro-batch: gradients need not be stored, and an optimizer may work on them while they are in the cache.
  bool updates_at_once(int count) const {
    const bool by_norm = optimizer_.clipnorm > 0 || optimizer_.global_clipnorm > 0;
    return !among_processes && leaf_count() == 1 && count <= training_.micro_batch(0) && team_->size() == 1 && !by_norm;
  }
  tallies<Program> step_at_once(const step_context<T>& context, const samples<T>& batch) {
    const flush_denormals scope;
    sums& leaf = leaves_[0];
    leaf.clear_sums();
    training_pass pass(context, training_.work_of(0), leaf, batch, 0);
    pass.forward(0);
    pass.measure();
    const double rate = optimizer_.learning_rate(step_);
    optimizer_.template with_rule<T>(step_, rate, [&](const auto& rule) {
      T *gradient[1] = {}, *slots[std::remove_cvref_t<decltype(rule)>::slots + 1] = {};
      for (int k = 0; k < std::remove_cvref_t<decltype(rule)>::slots; ++k) slots[k] = slots_.data() + k * layout.trainable;
      const weight_update<T, optimizer_type> all{optimizer_, rate, T(1) / T(batch.count), trained.span(), weights_.data(), slots, gradient, 1};
      pass.backward_and_update(
          [&](long begin, long end, const T* sums) {
            gradient[0] = const_cast<T*>(sums) - begin;
            all.apply(rule, begin, end);
          },
          [&](const auto& product, long begin) { all.apply_product(rule, product, begin); });
    });
    parameters_changed();
    ++step_;
    return tally_up();
  }

  template <class Rule>
  void update(const Rule& rule, std::span<T* const> gradients, T scale, double rate) {
    T* slots[Rule::slots + 1] = {};
    for (int k = 0; k < Rule::slots; ++k) slots[k] = slots_.data() + k * layout.trainable;
    const weight_update<T, optimizer_type> all{optimizer_, rate, scale, trained.span(), weights_.data(), slots, gradients.data(), int(gradients.size()), norms_.data()};
    const auto in_slices = [&](auto&& f) {
      const int slices = team_->size();
      team_->for_tasks(slices, [&](int i, int) { f(slice_begin(layout.trainable, i, slices), slice_begin(layout.trainable, i + 1, slices)); });
    };
    if (all.clips_by_norm()) in_slices([&](long begin, long end) { all.reduce(begin, end); });
    in_slices([&](long begin, long end) { all.apply(rule, begin, end); });
  }
};

}  // namespace strata
