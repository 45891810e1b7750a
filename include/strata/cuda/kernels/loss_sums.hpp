// The sums of the loss and the metrics of each leaf.
#pragma once
#include <strata/cuda/machine/loops.hpp>

namespace strata::machine {

/// The metrics that a kernel computes along with a loss: none. cuda/engine/metrics.hpp has those of a program.
struct no_metrics {
  /// The number of metrics that are means over samples.
  static constexpr int means = 0;
  /// Adds each metric of sample n, whose prediction has been stored, to sums[0], sums[1]... `row`: the threads that compute it,
  /// of which the first one has the sums.
  template <class Row>
  STRATA_DEVICE void measure(const Row& /*row*/, long /*n*/, double* /*sums*/) const {}
  /// Stores these sums, over `count` samples.
  constexpr void store(long /*leaf*/, long /*count*/, const double*) const {}
  /// For metrics that are not means: one thread adds up the samples [begin, begin + count), and stores the result.
  static constexpr bool has_others = false;
  constexpr void store_others(long /*leaf*/, long /*begin*/, long /*count*/) const {}
};

/// The addresses of (sum, count) of the loss and the metrics of each leaf: a call has all samples of its leaves.
template <class Metrics>
struct sums_of_leaves {
  /// The number of sums: of the loss, and of the metrics that are means.
  static constexpr int size = 1 + Metrics::means;
  using totals = double[size];
  double* loss;
  long stride;
  Metrics metrics;

  /// All threads of a block call it, each with its own part of the sums.
  template <int Threads>
  STRATA_DEVICE void store(const lane& l, double (&part)[Threads], long leaf, long begin, long count, totals& mine) const {
    for (double& each : mine) each = sum_of_block(l, part, each);
    if (l.thread() != 0) return;
    loss[leaf * stride] = mine[0];
    loss[leaf * stride + 1] = double(count);
    metrics.store(leaf, count, mine + 1);
    if constexpr (Metrics::has_others) metrics.store_others(leaf, begin, count);
  }
};

}  // namespace strata::machine
