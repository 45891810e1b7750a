// The computation of a parameter server's worker for a batch: the sums over its leaves, without an update.
#pragma once
#include <algorithm>
#include <strata/concepts/engine.hpp>
#include <strata/program/executor.hpp>
#include <strata/program/host_side.hpp>
#include <strata/program/leaf_policy.hpp>
#include <strata/program/pass.hpp>
#include <vector>

namespace strata::core {

/// Only for programs without whole-batch operations.
template <class Program, class Backend>
class batch_gradient {
  using engine_type = typename engine_for<Program, Backend>::type;
  static_assert(detail::diagnosed<typename detail::engine_verdict<engine_type>::type>[0]);
  using T = typename Program::value_type;
  using host = detail::host_arithmetic_of<engine_type>;
  using sums = leaf_sums<Program, Backend>;
  static constexpr const auto& layout = layout_of_program<Program>;

  int workers_;  // that share the leaves of a batch; 0: this one computes all
  leaf_policy policy_;
  engine_type engine_;
  detail::host_side<engine_type> host_{0};
  std::vector<T*> parts_;

 public:
  static constexpr std::size_t metric_sums_width = 2 * sums::metric_count;
  using options = typename engine_type::options;

  batch_gradient(options how, int workers)
      : workers_(workers), policy_(leaf_policy_of<Program>(how, workers)), engine_(how, policy_, 0) {}

  int threads() const { return host_.team(engine_).size(); }
  int leaves() const { return engine_.leaves(); }
  std::span<T> parameters() { return host_.parameters(engine_); }
  void parameters_changed() { host_.written(engine_); }
  void observe(kernel_observer* observer) { engine_.observe(observer); }

  /// Makes room for batches of up to `batch` samples.
  void prepare(int batch, purpose why) { engine_.prepare(batch, why, std::max(1, workers_)); }

  /// The number of subtrees in the gradients of worker `rank`, for a batch of `batch` samples.
  int parts(int batch, int rank) const {
    return workers_ == 0 ? 1 : detail::subtrees(share_of(policy_(batch).leaves, rank, workers_)).count();
  }

  /// The samples that worker `rank` computes of a batch of that size.
  row_range own_samples(int batch, int rank) const {
    if (workers_ == 0) return {0, batch};
    return policy_.samples_of(batch, rank, workers_);
  }

  /// The sums over the subtrees of leaves that worker `rank` computes: part k begins at to[k * layout.trainable].
  leaf_gradients<T, host_device> compute(philox random, const samples<T>& batch, int rank, T* to) {
    const int processes = std::max(1, workers_);
    if (workers_ == 0) rank = 0;  // batches of its own
    engine_.begin(purpose::training, batch, random, rank, processes);
    engine_.forward_backward(detail::no_callback{});
    const leaf_range own = share_of(engine_.leaves(), rank, processes);
    const detail::subtrees trees = workers_ == 0 ? detail::subtrees() : detail::subtrees(own);
    const leaf_gradients<T, host_device> computed = host_.gradients(engine_);
    auto& team = host_.team(engine_);
    for_slices(team, {0, layout.trainable}, [&](long first, long last) {
      if (workers_ == 0) return host::sum_leaves(to, computed.arrays, own.size(), first, last);
      for (int k = 0; k < trees.count(); ++k)
        host::sum_leaves(to + k * layout.trainable, computed.arrays + (trees[k].begin - own.begin), trees[k].size(), first, last);
    });
    parts_.clear();
    for (int k = 0; k < std::max(1, trees.count()); ++k) parts_.push_back(to + k * layout.trainable);
    return {parts_.data(), int(parts_.size()), own.begin, own.end, engine_.leaves()};
  }

  /// (sum, count) of the loss and of each metric of a leaf.
  double* metric_sums_of(int leaf) { return engine_.sums(leaf) + sums::statistics; }
  metric_sums<Program> sum_metrics() { return add_metric_sums(engine_); }

  metric_sums<Program> evaluate(philox random, const samples<T>& batch) {
    engine_.begin(purpose::inference, batch, random);
    engine_.measure();
    return sum_metrics();
  }

  void predict(philox random, const samples<T>& batch, const output_rows<T>& out) {
    engine_.begin(purpose::inference, batch, random);
    engine_.predict(out);
  }
};

}  // namespace strata::core
