// Sums over all leaves of a batch, on a GPU: statistics between two segments, and the metric sums of the steps of an epoch.
#pragma once
#include <cstddef>
#include <span>
#include <strata/base/rounded.hpp>
#include <strata/cuda/machine/tree.hpp>
#include <strata/program/pass.hpp>

namespace strata::machine {

/// The sums of all leaves, `stride` doubles from leaf to leaf.
struct leaf_doubles {
  const double* of;
  long stride;
  int leaves;

  constexpr double sum(long i) const {
    return sum_over_leaves<double>(leaves, [&](int l) { return of[l * stride + i]; });
  }
};

struct sum_statistics {
  leaf_doubles from;
  double* to;
  constexpr void operator()(long i) const { to[i] = from.sum(i); }
};

/// Adds the metric sums of a step, as add_metric_sums makes them, to the totals of steps: for i below 2 * reported.
/// to: the totals | steps so far, the first one whose loss was not finite, the mean loss of the last.
template <class Program>
struct add_totals {
  using counts = strata::detail::sum_counts<Program>;
  static constexpr long reported = long(counts::reported), before = reported - long(counts::of_leaf), size = 2 * reported + 3;
  leaf_doubles from;  // from the loss on
  const double* penalties;
  int penalty_count;
  double* to;

  /// Of a copy of the totals.
  static totals_of_steps<Program> read(std::span<const double> copy) {
    totals_of_steps<Program> all;
    for (std::size_t k = 0; k < all.sums.size(); ++k) all.sums[k] = {copy[2 * k], copy[2 * k + 1]};
    const auto steps = copy.subspan(std::size_t(2 * reported));
    all.first_bad_step = long(steps[1]), all.last_loss = steps[2];
    return all;
  }
  constexpr double sum(long i) const {
    const long pair = i / 2, which = i % 2;
    double value = 0;
    if (pair >= before)
      value = from.sum(i - 2 * before);
    else if (which == 1)
      value = from.sum(1);
    else
      for (long k = 0; k < long(counts::outputs); ++k) value += from.sum(2 * k);
    if (i == 0 && penalty_count > 0) {
      const double count = from.sum(1);
      for (int k = 0; k < penalty_count; ++k) value += strata::detail::rounded(penalties[k] * count);
    }
    return value;
  }
  constexpr void operator()(long i) const {
    const double value = sum(i);
    to[i] += value;
    if (i > 0) return;
    double* const steps = to + 2 * reported;
    steps[0] += 1;
    steps[2] = value / from.sum(1);
    if (!(value - value == 0) && steps[1] == 0) steps[1] = steps[0];
  }
};

}  // namespace strata::machine
