// The engine of a program that is split into stages: each place is a group of threads, and sends what others read.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <strata/base/error.hpp>
#include <strata/cpu/engine/engine.hpp>
#include <strata/cpu/engine/progress_counter.hpp>
#include <strata/program/micro_batch.hpp>
#include <strata/program/stages/print_stages.hpp>
#include <strata/program/stages/split_backend.hpp>
#include <strata/program/stages/stage_pass.hpp>
#include <utility>
#include <vector>

namespace strata::core {

/// A leaf is computed by one thread of each place, together: a row of threads. If places have several threads each, there are as
/// many rows, which share the leaves. Weights and the optimizer's slots are shared by all threads, and updated by all. Evaluation
/// and prediction are not split: each thread computes leaves of its own.
/// compute_options::threads is the number of threads of each place; 0: all cores together.
template <class Program, class Backend>
class split_engine : public cpu_engine<Program, Backend> {
 protected:
  using base = cpu_engine<Program, Backend>;
  using base::leaves_, base::plan, base::context_;
  using typename base::leaf, typename base::T, typename base::use_of_predictions;
  using split = typename Backend::split;
  using pass = detail::stage_pass<Program, Backend>;
  static constexpr const auto& table = split::table;
  static constexpr const auto& stages = stage_plan_of<Program, Backend>;
  static constexpr const auto& steps = stage_steps_of<Program, Backend>;
  using table_type = std::remove_cvref_t<decltype(table)>;
  static constexpr int places = table_type::places, micro_batches = table_type::micro_batches;
  static_assert(plan.segment_count == 1);
  static_assert(
      [] {
        for (int k = 1; k < plan.output_count; ++k)
          if (stages.stage_of[plan.output_group[k]] != stages.stage_of[plan.output_group[0]]) return false;
        return true;
      }(),
      "all outputs are computed by one stage");
  static_assert(table.is_complete() && detail::ends(stages, steps, table), "places would wait for each other forever");

  /// A micro-batch.
  struct piece {
    int leaf;
    long first;  // sample
    int count;
    bool adds;  // it is not the first of its leaf
  };
  struct row {
    std::vector<piece> pieces;
    detail::stage_memory<T, host_device> memory[table_type::stages];
    arena<T> scratch[places];
    progress_counter sent[stages.transfer_count + 1];  // micro-batches
    progress_counter released[table_type::stages];     // micro-batches that are through: there is room to receive others
  };

  int threads_;          // of each place
  int only_place_ = -1;  // of which this process computes the stages; -1: all
  int spins_ = this->team().spins();
  leaf_policy policy_;
  int capacity_ = 0;  // the most samples of a micro-batch
  int room_ = 0;      // the most micro-batches of a step
  std::vector<std::unique_ptr<row>> rows_;
  std::array<rank_exchange<T>*, std::size_t(places)> ranks_{};                 // that divide layers: at each place
  std::array<step_context<T, host_device>, std::size_t(places)> of_places_{};  // the context, with the ranks of each place

 public:
  static constexpr engine_traits traits{.freezes = true, .keeps_slices = true};

  split_engine(compute_options how, leaf_policy policy, int slots)
      : split_engine(with_all_places(how), policy, slots, threads_of_place(how)) {}

  int prepare(int batch, purpose why, int processes) {
    if (why == purpose::inference) return base::prepare(batch, why, processes);
    const int leaves = grow(batch, processes);
    if (leaves > 0) share_among(processes);
    return leaves;
  }
  void share_among(int processes) {
    this->allocate_gradients(leaves_.most_of_one(processes).leaves);
    make_room_for_stages(processes);
  }

  int most_samples() { return std::max(capacity_, this->inference().micro_batch()); }

  void begin(purpose why, const samples<T>& batch, philox random, int rank = 0, int processes = 1) {
    base::begin(why, batch, random, rank, processes);
    if (why == purpose::training) cut();
  }

  template <class Done>
  void forward_backward(Done&& done) {
    prepare_sums();
    const leaf_range own = leaves_.own();
    for (const auto& r : rows_) {
      for (progress_counter& each : r->sent) each.reset();
      for (progress_counter& each : r->released) each.reset();
    }
    // As many tasks as threads: each thread begins with its own, so that all of them run at the same time.
    this->team().for_tasks(places * threads_, [&](int i, int) {
      row& r = *rows_[std::size_t(i / places)];
      compute(r, i % places, counted_messages{*this, r});
    });
    for (int g = plan.group_count - 1; g >= 0; --g)
      for (int l = own.begin; l < own.end; ++l)
        if (plan.groups[g].trains) done(g);
  }

 protected:
  /// how.threads: all of this process. rows: of threads that compute micro-batches.
  split_engine(compute_options how, leaf_policy policy, int slots, int rows, int only_place = -1)
      : base(how, policy, slots), threads_(rows), only_place_(only_place), policy_(policy) {
    for (int i = 0; i < rows; ++i) rows_.push_back(std::make_unique<row>());
  }

  /// For a training batch: the largest number of leaves, or 0 if there is memory for it. Throws strata_error for the
  /// largest batch so far if the micro-batches of all groups are not of equal size. A group is a process, or the threads that
  /// have the same parts of divided layers.
  int grow(int batch, int groups) {
    if (batch > leaves_.prepared_for(purpose::training)) refuse_unequal_micro_batches(batch, groups);
    const batch_division most = leaves_.grow(batch, purpose::training);
    this->sums_.grow(base::sums_stride * std::size_t(most.leaves));
    return most.leaves;
  }
  /// Of the training batches of up to `batch` samples: the most samples of a micro-batch, and the most micro-batches of a
  /// process.
  struct most_pieces {
    int samples = 0, count = 0;
    constexpr most_pieces(const leaf_policy& policy, int batch, int processes, int rows, int micro_batch) {
      for (int n = 1; n <= batch; ++n) {
        const auto [leaves, capacity] = policy(n);
        for (const int own : {leaves / processes, (leaves + processes - 1) / processes}) {
          const int each = samples_of_turn<Program, Backend>(capacity, own, rows, micro_batch);
          samples = std::max(samples, each), count = std::max(count, own * ((capacity + each - 1) / each));
        }
      }
    }
  };
  static constexpr long scratch_for(int samples) { return plan.scratch + long(samples) * plan.scratch_per_sample; }
  bool is_here(int stage) const { return only_place_ < 0 || table_type::place_of(stage) == only_place_; }
  void make_room_for_stages(int processes) {
    const batch_division most = leaves_.most_of_one(processes);
    const most_pieces pieces(policy_, leaves_.prepared_for(purpose::training), processes, threads_, this->options_.micro_batch);
    capacity_ = std::max(capacity_, pieces.samples), room_ = pieces.count;
    for (const auto& r : rows_) {
      for (int s = 0; s < table_type::stages; ++s) {
        if (!is_here(s)) continue;
        r->memory[s].prepare({}, stages.own[s], stages.received[s], table.in_flight(s), capacity_);
        r->scratch[table_type::place_of(s)].grow(std::size_t(scratch_for(capacity_)));
      }
      r->pieces.reserve(std::size_t(most.leaves * most.capacity));
    }
  }

  void prepare_sums() {
    this->penalize();
    clear_sums_of_leaves(base::gradient_size);
  }
  /// elements: of the gradient of a leaf.
  void clear_sums_of_leaves(long elements) {
    const leaf_range own = leaves_.own();
    for (int l = own.begin; l < own.end; ++l) {
      this->clear_sums(l);
      if (l >= leaves_.occupied()) std::fill_n(leaves_.gradient_of(l), elements, T{});
    }
  }

  /// Messages between threads: counters hold how many micro-batches were sent.
  struct counted_messages {
    split_engine& engine;
    row& of;

    void wait(int t, int number) const { of.sent[t].wait(number + 1, engine.spins_); }
    void send(int t, int number, int count) const {
      const stage_transfer& it = stages.transfers[t];
      of.released[it.to].wait(number - table.in_flight(it.to), engine.spins_);
      copy(of, it, number, count);
      of.sent[t].raise();
    }
    void release(int stage) const { of.released[stage].raise(); }
  };
  static void copy(row& r, const stage_transfer& it, int number, int count) {
    std::copy_n(r.memory[it.from].at(it.source, number), long(count) * it.size, r.memory[it.to].at(it.target, number));
  }

  static int threads_of_place(const compute_options& how) {
    constexpr int most = (1 << 16) / places;  // so that all of them can be counted
    if (how.threads > most)
      throw_error({"with ", places, " places, each has at most ", most, " threads, but ", how.threads, " were requested"});
    return how.threads > 0 ? how.threads : std::max(1, available_cores() / places);
  }
  static compute_options with_all_places(compute_options how) {
    how.threads = places * threads_of_place(how);
    return how;
  }

  void refuse_unequal_micro_batches(int batch, int groups) const {
    if constexpr (micro_batches > 1) {
      if (batch % (micro_batches * groups) == 0) return;
      if (groups == 1)
        throw_error({"a batch of ", batch, " samples cannot be cut into ", micro_batches, " micro-batches of equal size"});
      throw_error({"a batch of ", batch, " samples cannot be cut into ", groups, " groups of ", micro_batches,
                   " micro-batches of equal size"});
    }
  }
  int samples_of_piece(int capacity, int leaves) const {
    return samples_of_turn<Program, Backend>(capacity, leaves, threads_, this->options_.micro_batch);
  }
  /// Cuts the leaves of this step into micro-batches.
  void cut() {
    for (std::size_t p = 0; p < std::size_t(places); ++p) of_places_[p] = context_, of_places_[p].ranks = ranks_[p];
    const leaf_range own = leaves_.own();
    const int samples = samples_of_piece(int(leaves_.first_of(1)), own.size());
    for (int i = 0; i < threads_; ++i) {
      std::vector<piece>& pieces = rows_[std::size_t(i)]->pieces;
      pieces.clear();
      const leaf_range share = share_of(own.size(), i, threads_);
      for (int l = own.begin + share.begin; l < own.begin + share.end; ++l)
        leaves_.in_micro_batches(l, samples, [&](const strata::core::samples<T>& some, long first) {
          pieces.push_back({l, first, some.count, first > leaves_.first_of(l)});
        });
    }
  }

  /// The turns of one place.
  void compute(row& r, int place, auto&& messages) {
    const int count = int(r.pieces.size());
    for (int round = 0; round * micro_batches < count; ++round)
      for (const turn& t : table.turns[std::size_t(place)])
        if (const int number = round * micro_batches + t.micro_batch; number < count) compute(r, t, number, messages);
  }
  samples<T> samples_of(const piece& p) const { return leaves_.batch().rows(int(p.first), p.count, base::ends); }

  void compute(row& r, const turn& t, int number, auto& messages) {
    const piece& p = r.pieces[std::size_t(number)];
    const samples<T> some = samples_of(p);
    const int place = table_type::place_of(t.stage);
    pass now(of_places_[std::size_t(place)], r.memory[t.stage], r.scratch[place].data(), this->sums_of(p.leaf), some, p.first,
             number);
    bool has_outputs = false;
    for (const detail::stage_step& step : steps.of(t.backward, t.stage)) {
      if (step.does == detail::stage_action::wait) {
        messages.wait(step.which, number);
      } else if (step.does == detail::stage_action::send) {
        const stage_transfer& it = stages.transfers[step.which];
        messages.send(step.which, number, it.of_gradient && !now.group_trains(it.group) ? 0 : p.count);
      } else {
        now.compute(step, p.adds);
        has_outputs = has_outputs || plan.groups[step.which].number_of_output >= 0;
      }
    }
    if (t.backward) return messages.release(t.stage);
    if (!has_outputs) return;
    output_rows<const T> predictions;
    for (int k = 0; k < plan.output_count; ++k) predictions.at[k] = now.predictions(k);
    use_of_predictions::measure(predictions, some, this->sums_of(p.leaf).metrics(), ranks_[std::size_t(place)]);
  }
};

template <class Program, class Base, class Split>
  requires(device_of<Base>::is_host)
struct engine_for<Program, split_backend<Base, Split>> {
  using type = split_engine<Program, split_backend<Base, Split>>;
};

}  // namespace strata::core
