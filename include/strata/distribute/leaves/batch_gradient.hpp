// What a worker of a parameter server does with a batch: the sums over its leaves, without an update.
#pragma once
#include <algorithm>
#include <strata/distribute/leaves/batch_leaves.hpp>
#include <strata/distribute/leaves/leaf_share.hpp>

namespace strata {

/// Only for programs without whole-batch operations.
template <class Program, class Backend>
class batch_gradient : batch_leaves<Program, Backend> {
  using base = batch_leaves<Program, Backend>;
  using T = typename Program::value_type;
  using base::layout, base::team_, base::training_, base::leaves_, base::own_, base::inference, base::leaf_count;
  using typename base::sums;

  int workers_;  // that share the leaves of a batch; 0: this one computes all

 public:
  static constexpr std::size_t tally_width = 2 * sums::tally_count;

  batch_gradient(compute_options options, int workers) : base(options, workers), workers_(workers) {}

  int threads() const { return team_->size(); }
  int leaves() const { return leaf_count(); }
  using base::tally_up, base::weights_changed;

  /// Makes room for batches of up to so many samples.
  void prepare(int batch, purpose why) { this->make_room(batch, why, std::max(1, workers_)); }

  /// How many subtrees the gradients of worker `rank` are, for a batch of so many samples.
  int parts(int batch, int rank) const {
    return workers_ == 0 ? 1 : subtrees(share_of(this->divide_(batch).leaves, rank, workers_)).count();
  }

  /// The samples of a batch of so many that worker `rank` computes.
  row_range own_samples(int batch, int rank) const {
    if (workers_ == 0) return {0, batch};
    return this->samples_of(this->divide_, batch, rank, workers_);
  }

  /// The sums over the subtrees of leaves that worker `rank` computes: part k begins at to[k * layout.trainable].
  void compute(const T* weights, philox random, samples<T> batch, int rank, T* to) {
    const step_context<T> context =
        this->begin(training_, weights, nullptr, batch.count, random, workers_ == 0 ? 0 : rank, std::max(1, workers_));
    this->penalize(weights);
    team_->for_tasks(own_.size(), [&](int i, int thread) { this->micro_batches(own_.begin + i, thread, context, batch); });
    const subtrees parts(own_);
    const int slices = threads();
    team_->for_tasks(slices, [&](int i, int) {
      const long first = slice_begin(layout.trainable, i, slices), last = slice_begin(layout.trainable, i + 1, slices);
      if (workers_ == 0) return sum_leaves(to, this->own_gradients(), own_.size(), first, last);
      for (int k = 0; k < parts.count(); ++k) {
        const int leaf = parts[k].begin - own_.begin;
        sum_leaves(to + k * layout.trainable, this->own_gradients() + leaf, parts[k].size(), first, last);
      }
    });
  }

  /// (sum, count) of the loss and of each metric of a leaf.
  double* tallies_of(int leaf) { return leaves_[std::size_t(leaf)].tally_at(0); }

  tallies<Program> evaluate(const T* weights, philox random, samples<T> batch) {
    const step_context<T> context = this->begin(inference(), weights, nullptr, batch.count, random);
    this->penalize(weights);
    team_->for_tasks(leaf_count(), [&](int l, int thread) { this->measure_leaf(l, thread, context, batch); });
    return tally_up();
  }

  void predict(const T* weights, philox random, samples<T> batch, T* out) {
    this->predict_all(this->begin(inference(), weights, nullptr, batch.count, random), batch, out);
  }
};

}  // namespace strata
