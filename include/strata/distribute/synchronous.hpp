// The executor of all synchronous strategies: a global batch is cut into leaves, whoever computes them, and leaves are added
// in a fixed binary tree. So the bits of a step depend on the batch alone, not on the number of threads.
#pragma once
#include <bit>
#include <cmath>
#include <memory>
#include <strata/cpu/backends.hpp>
#include <strata/cpu/update.hpp>
#include <strata/distribute/leaf.hpp>
#include <strata/distribute/team.hpp>
#include <strata/program/initialize.hpp>
#include <vector>

namespace strata {

/// Into how many leaves a global batch is cut, unless the user says otherwise: a function of the batch only. Each leaf
/// writes and re-reads a gradient of its own, so few are fast on few cores, and many use many cores.
constexpr int default_leaves(int batch) {
  return batch >= 512 ? 16 : batch >= 128 ? 8 : batch >= 32 ? 4 : batch >= 8 ? 2 : 1;
}

/// How one process computes: threads (0: all cores), leaves (0: as the batch says; a power of two), and the samples that go
/// through the network together (0: as many as fit into the second-level cache).
struct compute_options {
  int threads = 0;
  int leaves = 0;
  int micro_batch = 0;
};

template <class Program, class Backend>
class synchronous_executor : compiled<Program, Backend> {
  using T = typename Program::value_type;
  using optimizer_type = typename Program::optimizer;
  static constexpr const auto& plan = plan_of<Program, Backend>;
  static constexpr const auto& layout = layout_of_program<Program>;
  static constexpr const auto& code = code_table<Program, Backend>;
  static constexpr auto trained = trained_ranges(layout);
  static constexpr long input_size = Program::network::input_shape.size(), output_size = Program::network::output_shape.size();

  using work = workspace<Program, Backend>;
  using sums = leaf_sums<Program, Backend>;

  compute_options options_;
  optimizer_type optimizer_;
  philox seed_;
  std::unique_ptr<thread_team> team_;
  std::vector<work> works_;  // one per thread, or one per leaf where saved values must live for the whole leaf
  std::vector<sums> leaves_;
  arena<T> weights_, derived_, slots_;
  arena<double> statistics_, norms_, penalties_;
  int capacity_ = 0, leaf_capacity_ = 0, micro_batch_ = 0;
  long step_ = 0;
  bool derived_is_stale_ = true;

 public:
  synchronous_executor(optimizer_type o, std::uint64_t seed, compute_options options = {})
      : options_(options),
        optimizer_(std::move(o)),
        seed_{seed},
        team_(std::make_unique<thread_team>(options.threads > 0 ? options.threads : available_cores())),
        weights_(std::size_t(layout.size)),
        derived_(std::size_t(plan.derived)),
        slots_(std::size_t(layout.trainable) * std::size_t(optimizer_.slots())),
        statistics_(sums::statistics),
        norms_(std::size_t(weight_update<T, optimizer_type>::piece_count(trained.span()))),
        penalties_(std::size_t(trained.count)) {
    initialize_parameters(layout, weights_.span(), seed);
  }

  std::span<T> parameters() { return weights_.span(); }
  std::span<T> slots() { return slots_.span(); }
  void parameters_changed() { derived_is_stale_ = true; }
  optimizer_type& optimizer() { return optimizer_; }
  /// Updates so far: the counter of random numbers and schedules.
  long step() const { return step_; }
  void set_step(long step) { step_ = step; }
  int threads() const { return team_->size(); }

  void prepare(int batch) {
    if (batch <= capacity_) return;
    capacity_ = batch;
    const int leaves = options_.leaves > 0 ? options_.leaves : default_leaves(batch);
    leaves_.resize(std::size_t(leaves));
    leaf_capacity_ = (batch + leaves - 1) / leaves;
    micro_batch_ = plan.needs_whole_leaf() ? leaf_capacity_ : std::min(leaf_capacity_, options_.micro_batch > 0 ? options_.micro_batch : micro_batch());
    works_.resize(plan.needs_whole_leaf() ? std::size_t(leaves) : std::size_t(team_->size()));
    for (work& each : works_) each.prepare(micro_batch_);
  }

  tallies<Program> train_step(samples<T> batch) {
    derive();
    penalize();
    const step_context<T> context = begin(batch.count);
    if constexpr (plan.needs_whole_leaf()) {
      whole_leaves(context, batch);
    } else {
      team_->for_tasks(leaf_count(), [&](int l, int rank) { micro_batches(l, rank, context, batch); });
    }
    const double rate = optimizer_.learning_rate(step_);
    optimizer_.template with_rule<T>(step_, rate, [&](const auto& rule) { update(rule, T(1) / T(batch.count), rate); });
    if constexpr (plan.needs_whole_leaf()) update_state(context, batch);
    derived_is_stale_ = true;
    ++step_;
    return tally_up();
  }

  tallies<Program> finish() { return {}; }

  tallies<Program> evaluate_step(samples<T> batch) {
    derive();
    penalize();
    const step_context<T> context = begin(batch.count);
    team_->for_tasks(leaf_count(), [&](int l, int rank) {
      leaves_[std::size_t(l)].clear_sums();
      in_micro_batches(l, batch, [&](samples<T> some, long first) {
        detail::pass<Program, Backend> pass(context, work_of(rank, l), leaves_[std::size_t(l)], some, first);
        pass.infer();
        pass.measure();
      });
    });
    return tally_up();
  }

  /// Predictions of each sample, row after row. Labels are not needed.
  void predict(samples<T> batch, T* out) {
    derive();
    const step_context<T> context = begin(batch.count);
    team_->for_tasks(leaf_count(), [&](int l, int rank) {
      in_micro_batches(l, batch, [&](samples<T> some, long first) {
        detail::pass<Program, Backend> pass(context, work_of(rank, l), leaves_[std::size_t(l)], some, first);
        pass.predict();
        std::copy_n(work_of(rank, l).predictions(), some.count * output_size, out + first * output_size);
      });
    });
  }

 private:
  /// As many samples as keep their activations within a second-level cache, beside the weights that pass by.
  static constexpr int micro_batch() {
    constexpr long cache = 1 << 20;
    const long bytes = long(plan.workspace + plan.scratch_per_sample + 1) * long(sizeof(T));
    return int(std::clamp<long>(long(std::bit_floor(std::uint64_t(cache / bytes + 1))), 4, 256));
  }

  step_context<T> begin(int count) {
    return {weights_.data(), derived_.data(), statistics_.data(), double(count), seed_.fork(std::uint64_t(step_) + (1ull << 32))};
  }

  int leaf_count() const { return int(leaves_.size()); }
  work& work_of(int rank, int leaf) { return works_[std::size_t(plan.needs_whole_leaf() ? leaf : rank)]; }

  /// Leaf l holds the samples [l, l + 1) * leaf_capacity, as far as there are any.
  samples<T> share(int l, const samples<T>& batch) const { return slice(batch, l * leaf_capacity_, leaf_capacity_); }
  static samples<T> slice(const samples<T>& batch, int first, int count) {
    first = std::min(first, batch.count);
    return {batch.x + first * input_size, batch.labels ? batch.labels + first : nullptr,
            batch.targets ? batch.targets + first * output_size : nullptr, std::min(count, batch.count - first)};
  }
  /// f(samples, number of the first one in the global batch)
  template <class F>
  void in_micro_batches(int l, const samples<T>& batch, F&& f) {
    const samples<T> mine = share(l, batch);
    for (int at = 0; at < mine.count; at += micro_batch_) f(slice(mine, at, micro_batch_), long(l) * leaf_capacity_ + at);
  }

  /// Rebuilds the derived weight layouts, each group by one thread.
  void derive() {
    if constexpr (plan.derived > 0)
      if (derived_is_stale_)
        team_->for_tasks(plan.group_count, [&](int g, int) {
          if (!code[std::size_t(g)].derive) return;
          const T* w[max_group_parameters] = {};
          for (int k = 0; k < plan.groups[g].parameter_count; ++k) w[k] = weights_.data() + plan.groups[g].parameters[k];
          code[std::size_t(g)].derive(w, derived_.data() + plan.groups[g].derived);
        });
    derived_is_stale_ = false;
  }

  /// Depth first: a micro-batch goes through the whole network and back while it stays in the cache.
  void micro_batches(int l, int rank, const step_context<T>& context, const samples<T>& batch) {
    sums& leaf = leaves_[std::size_t(l)];
    leaf.clear_sums();
    bool adds = false;
    in_micro_batches(l, batch, [&](samples<T> some, long first) {
      detail::pass<Program, Backend> pass(context, work_of(rank, l), leaf, some, first);
      pass.forward(0);
      pass.measure();
      pass.backward(0, adds);
      adds = true;
    });
    if (!adds) leaf.clear_gradient();
  }

  /// Segment by segment: statistics of the whole batch are summed between two.
  void whole_leaves(const step_context<T>& context, const samples<T>& batch) {
    const auto for_leaves = [&](auto&& f) {
      team_->for_tasks(leaf_count(), [&](int l, int rank) {
        const samples<T> mine = share(l, batch);
        detail::pass<Program, Backend> pass(context, work_of(rank, l), leaves_[std::size_t(l)], mine, long(l) * leaf_capacity_);
        if (mine.count > 0) f(pass);
      });
    };
    for (int l = 0; l < leaf_count(); ++l) {
      leaves_[std::size_t(l)].clear_sums();
      if (share(l, batch).count == 0) leaves_[std::size_t(l)].clear_gradient();
    }
    const int last = plan.segment_count - 1;
    for (int k = 0; k < last; ++k) {
      for_leaves([&](auto& pass) { pass.forward(k); });
      sum_statistics(k + 1, 0);
    }
    for_leaves([&](auto& pass) {
      pass.forward(last);
      pass.measure();
      pass.backward(last, false);
    });
    for (int k = last; k > 0; --k) {
      sum_statistics(k, 1);
      for_leaves([&](auto& pass) { pass.backward(k - 1, false); });
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
      detail::pass<Program, Backend>(context, works_[0], leaves_[0], batch, 0).update_state(g, weights_.data());
    }
  }

  template <class F>
  double tree(F&& value) const {
    double sum[max_leaves] = {};
    const int n = leaf_count();
    for (int l = 0; l < n; ++l) sum[l] = value(l);
    for (int distance = 1; distance < n; distance *= 2)
      for (int l = 0; l + distance < n; l += 2 * distance) sum[l] += sum[l + distance];
    return sum[0];
  }

  /// What regularizers add to the loss, each parameter by one thread.
  void penalize() {
    if constexpr (layout.has_regularizers())
      team_->for_tasks(trained.count, [&](int k, int) {
        const parameter_range& p = trained.ranges[k];
        penalties_[std::size_t(k)] = weight_update<T, optimizer_type>::penalty_of(p.regularizer, weights_.data(), p.begin, p.end);
      });
  }

  tallies<Program> tally_up() {
    tallies<Program> out;
    for (std::size_t k = 0; k < out.size(); ++k)
      out[k] = {tree([&](int l) { return const_cast<sums&>(leaves_[std::size_t(l)]).tally_at(k)[0]; }),
                tree([&](int l) { return const_cast<sums&>(leaves_[std::size_t(l)]).tally_at(k)[1]; })};
    if constexpr (layout.has_regularizers())
      for (double penalty : penalties_.span()) out[0].sum += penalty * out[0].count;
    return out;
  }

  template <class Rule>
  void update(const Rule& rule, T scale, double rate) {
    T *leaves[max_leaves] = {}, *slots[Rule::slots + 1] = {};
    for (int l = 0; l < leaf_count(); ++l) leaves[l] = leaves_[std::size_t(l)].gradient();
    for (int k = 0; k < Rule::slots; ++k) slots[k] = slots_.data() + k * layout.trainable;
    const weight_update<T, optimizer_type> all{optimizer_, rate, scale, trained.span(), weights_.data(), slots, leaves, leaf_count(), norms_.data()};
    const auto in_slices = [&](auto&& f) {
      const int slices = team_->size();
      team_->for_tasks(slices, [&](int i, int) { f(slice_begin(layout.trainable, i, slices), slice_begin(layout.trainable, i + 1, slices)); });
    };
    if (all.clips_by_norm()) in_slices([&](long begin, long end) { all.reduce(begin, end); });
    in_slices([&](long begin, long end) { all.apply(rule, begin, end); });
  }
};

}  // namespace strata
