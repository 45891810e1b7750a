// What every executor of this machine does with a batch: it is cut into leaves, each with sums of its own, which threads compute.
#pragma once
#include <algorithm>
#include <bit>
#include <memory>
#include <strata/base/error.hpp>
#include <strata/cpu/backends.hpp>
#include <strata/cpu/update.hpp>
#include <strata/distribute/leaves/leaf_share.hpp>
#include <strata/distribute/leaves/prepared_plan.hpp>
#include <strata/network/work.hpp>
#include <string>
#include <vector>

namespace strata {

/// Into how many leaves a global batch is cut, unless the user says otherwise: a function of batch and network only, so that no
/// machine computes other bits. A leaf has a gradient of its own, which it writes and somebody reads: that pays for itself with
/// 32 samples where weights are used many times each, as in convolutions, and with 64 where they are used once.
constexpr int default_leaves(int batch, bool reuses_weights) {
  const int worth_it = batch / (reuses_weights ? 32 : 64), least = batch >= 16 ? 2 : 1;
  return std::clamp(int(std::bit_floor(unsigned(worth_it))), least, 16);
}

/// How one process computes: threads (0: all cores), leaves (0: as the batch says; a power of two), and the samples that go
/// through the network together (0: as many as fit into the second-level cache).
struct compute_options {
  int threads = 0;
  int leaves = 0;
  int micro_batch = 0;
};

/// Base of executors. Leaves follow from the batch and the network alone, and the sums of a leaf from its samples: whoever computes
/// them, and on however many threads, they have the same bits.
template <class Program, class Backend>
class batch_leaves {
 protected:
  using T = typename Program::value_type;
  static constexpr const auto& layout = layout_of_program<Program>;
  static constexpr auto trained = trained_ranges(layout);
  static constexpr long input_size = Program::network::input_shape.size(), output_size = Program::network::output_shape.size();

  static constexpr bool reuses_weights = multiply_adds_of<typename Program::network> > 4 * layout.trainable;

  /// Where both have the same plan, they share its memory.
  static constexpr bool one_plan = !infers_differently<Program>;
  static constexpr purpose inferring = one_plan ? purpose::training : purpose::inference;
  struct nothing {};
  using training_pass = detail::pass<Program, Backend, purpose::training>;
  using inference_pass = detail::pass<Program, Backend, inferring>;
  using sums = leaf_sums<Program, Backend>;

  /// How a batch is cut: into `leaves` of up to `capacity` samples.
  struct division {
    int leaves = 0, capacity = 0;
  };

  /// A function of the size of the batch, and of options that never change: the bits of a step depend on nothing that happened before.
  struct division_of {
    int leaves;  // 0: as the size says, but at least
    int least;
    division operator()(int count) const {
      const int n = leaves > 0 ? leaves : std::max(default_leaves(count, reuses_weights), least);
      return {n, std::max(1, (count + n - 1) / n)};
    }
  };

  /// The samples of a batch of so many that one of several processes computes.
  static row_range samples_of(const division_of& divide, int count, int rank, int processes) {
    const auto [leaves, capacity] = divide(count);
    const leaf_range own = share_of(leaves, rank, processes);
    return {std::min(count, own.begin * capacity), std::min(count, own.end * capacity)};
  }

  /// A batch has at least one leaf for each of so many processes; 0: they do not share batches.
  /// Throws strata::error for more leaves, or processes, than a batch can have leaves.
  batch_leaves(compute_options options, int processes)
      : options_((check(options, processes), options)),
        divide_{options.leaves, int(std::bit_ceil(unsigned(processes)))},
        team_(std::make_unique<thread_team>(options.threads > 0 ? options.threads : available_cores())),
        penalties_(std::size_t(trained.count)) {}

  compute_options options_;
  division_of divide_;
  std::unique_ptr<thread_team> team_;
  prepared_plan<Program, Backend, purpose::training> training_;
  [[no_unique_address]] std::conditional_t<one_plan, nothing, prepared_plan<Program, Backend, purpose::inference>> inference_;
  std::vector<sums> leaves_;
  std::vector<arena<T>> gradients_;  // of the leaves that this process computes,
  std::vector<T*> gradients_at_;     // and where they are
  arena<double> penalties_;
  division now_;              // of the batch at hand
  leaf_range own_;            // that this process computes of it
  division most_;             // of all batches that there is room to train with
  int prepared_for_[2] = {};  // the largest batch of each purpose

  static void check(const compute_options& options, int processes) {
    if (options.leaves < 0 || options.leaves > max_leaves)
      throw error("compute_options: leaves is " + std::to_string(options.leaves) + ", but a batch has 1 to " + std::to_string(max_leaves) +
                  " of them (0: as its size says)");
    if (processes > max_leaves)
      throw error(std::to_string(processes) + " processes cannot share the leaves of a batch: there are at most " +
                  std::to_string(max_leaves));
  }

  auto& inference() {
    if constexpr (one_plan)
      return training_;
    else
      return inference_;
  }

  void weights_changed() {
    training_.weights_changed();
    inference().weights_changed();
  }

  /// Makes room for batches of up to so many samples, which so many processes share; returns the most leaves that they have, or 0
  /// if there was room enough.
  int make_room(int batch, purpose why, int processes = 1) {
    if (batch <= prepared_for_[int(why)]) return 0;
    prepared_for_[int(why)] = batch;
    division most;
    for (int count = 1; count <= batch; ++count) {
      const division d = divide_(count);
      most = {std::max(most.leaves, d.leaves), std::max(most.capacity, d.capacity)};
    }
    if (most.leaves > int(leaves_.size())) leaves_.resize(std::size_t(most.leaves));
    if (why == purpose::inference) {
      inference().prepare(0, most.capacity, team_->size(), options_.micro_batch);  // needs no whole leaves
    } else {
      most_ = most;
      make_room_for_shares(processes);
    }
    return most.leaves;
  }
  /// To train with as many leaves as a process has at most when they are so many.
  void make_room_for_shares(int processes) {
    const int share = (most_.leaves + processes - 1) / processes;
    if (share > int(gradients_.size())) gradients_.resize(std::size_t(share));
    gradients_at_.clear();
    for (arena<T>& each : gradients_) {
      each.grow(std::size_t(layout.trainable));
      gradients_at_.push_back(each.data());
    }
    training_.prepare(share, most_.capacity, team_->size(), options_.micro_batch);
  }

  int leaf_count() const { return now_.leaves; }
  /// The gradients of the leaves that this process computes, in order.
  T* const* own_gradients() const { return gradients_at_.data(); }

  /// This process is one of several that share the batch.
  step_context<T> begin(auto& prepared, const T* weights, double* statistics, int count, philox random, int rank = 0,
                        int processes = 1) {
    now_ = divide_(count);
    own_ = share_of(now_.leaves, rank, processes);
    for (int i = 0; i < std::min(own_.size(), int(gradients_.size())); ++i)
      leaves_[std::size_t(own_.begin + i)].place_gradient(gradients_at_[std::size_t(i)]);
    prepared.derive(*team_, weights);
    return {weights, prepared.derived(), statistics, double(count), random};
  }

  /// Leaf l holds the samples [l, l + 1) * capacity, as far as there are any.
  samples<T> share(int l, const samples<T>& batch) const { return slice(batch, l * now_.capacity, now_.capacity); }
  static samples<T> slice(const samples<T>& batch, int first, int count) {
    first = std::min(first, batch.count);
    return {batch.x + first * input_size, batch.labels ? batch.labels + first : nullptr,
            batch.targets ? batch.targets + first * output_size : nullptr, std::min(count, batch.count - first)};
  }
  /// f(samples, number of the first one in the global batch)
  template <class F>
  void in_micro_batches(const auto& prepared, int l, const samples<T>& batch, int segment, F&& f) {
    const samples<T> mine = share(l, batch);
    const int size = prepared.micro_batch(segment);
    for (int at = 0; at < mine.count; at += size) f(slice(mine, at, size), long(l) * now_.capacity + at);
  }

  /// Depth first: a micro-batch goes through the whole network and back while it stays in the cache.
  /// passed(g): the gradient of the leaf is complete down to group g of the plan; not called for a leaf without samples.
  template <class Passed = detail::nobody_is_told>
  void micro_batches(int l, int rank, const step_context<T>& context, const samples<T>& batch, Passed&& passed = {}) {
    sums& leaf = leaves_[std::size_t(l)];
    leaf.clear_sums();
    bool adds = false;
    in_micro_batches(training_, l, batch, 0, [&](samples<T> some, long first) {
      training_pass pass(context, training_.work_of(rank), leaf, some, first);
      pass.forward(0);
      pass.measure();
      const bool is_last = first + some.count == std::min(long(l + 1) * now_.capacity, long(batch.count));
      pass.backward(0, adds, [&](int g) {
        if (is_last) passed(g);
      });
      adds = true;
    });
    if (!adds) leaf.clear_gradient();
  }

  /// Loss and metrics of the samples of leaf l.
  void measure_leaf(int l, int rank, const step_context<T>& context, const samples<T>& batch) {
    leaves_[std::size_t(l)].clear_sums();
    in_micro_batches(inference(), l, batch, 0, [&](samples<T> some, long first) {
      inference_pass pass(context, inference().work_of(rank), leaves_[std::size_t(l)], some, first);
      pass.infer();
      pass.measure();
    });
  }
  /// Predictions of each sample, row after row. Labels are not needed.
  void predict_all(const step_context<T>& context, const samples<T>& batch, T* out) {
    const int occupied = (batch.count + now_.capacity - 1) / now_.capacity;  // one sample wakes no other thread
    team_->for_tasks(occupied, [&](int l, int rank) {
      in_micro_batches(inference(), l, batch, 0, [&](samples<T> some, long first) {
        auto& work = inference().work_of(rank);
        inference_pass pass(context, work, leaves_[std::size_t(l)], some, first);
        pass.predict();
        std::copy_n(work.predictions(), some.count * output_size, out + first * output_size);
      });
    });
  }

  template <class F>
  double tree(F&& value) const {
    return sum_in_tree(value, 0, leaf_count());
  }

  /// What regularizers add to the loss, each parameter by one thread.
  void penalize([[maybe_unused]] const T* weights) {
    if constexpr (layout.has_regularizers())
      team_->for_tasks(trained.count, [&](int k, int) {
        const parameter_range& p = trained.ranges[k];
        penalties_[std::size_t(k)] = weight_update<T, typename Program::optimizer>::penalty_of(p.regularizer, weights, p.begin, p.end);
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
};

}  // namespace strata
