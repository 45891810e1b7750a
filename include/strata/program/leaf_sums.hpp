// The sums over the leaves of a batch: gradients, statistics, losses and metrics.
#pragma once
#include <cstddef>
#include <strata/base/rounded.hpp>
#include <strata/network/leaves.hpp>
#include <strata/program/compiled.hpp>
#include <strata/program/metric_sums.hpp>

namespace strata::core {

/// The sums over the samples of a leaf: the gradient, and in `sums` statistics | (sum, count) of the loss of each output | of the
/// metrics of each output. Strategies add up these and nothing else.
template <class Program, class Backend>
struct leaf_sums {
  using T = typename Program::value_type;
  static constexpr std::size_t statistics = std::size_t(plan_of<Program, Backend>.statistics),
                               metric_count = detail::sum_counts<Program>::of_leaf,
                               size = statistics + 2 * metric_count;  // without the gradient

  T* gradient = nullptr;  // null: another process computes this leaf
  double* sums = nullptr;

  double* statistics_at(int offset) const { return sums + offset; }
  double* loss_at(int output) const { return sums + statistics + 2 * output; }
  double* metrics() const { return sums + statistics + 2 * detail::sum_counts<Program>::outputs; }
};

/// The metric sums over all leaves of the current batch. The loss includes the penalties of regularizers for each sample.
template <class Engine>
metric_sums<typename Engine::program> add_metric_sums(Engine& engine) {
  using counts = detail::sum_counts<typename Engine::program>;
  constexpr auto first = leaf_sums<typename Engine::program, typename Engine::backend>::statistics;
  metric_sums<typename Engine::program> out;
  const int leaves = engine.leaves();
  const auto sum_of = [&](std::size_t i) { return sum_in_tree([&](int l) { return engine.sums(l)[first + i]; }, 0, leaves); };
  constexpr std::size_t total = counts::reported - counts::of_leaf;
  for (std::size_t k = 0; k < counts::of_leaf; ++k) out[total + k] = {sum_of(2 * k), sum_of(2 * k + 1)};
  if constexpr (total > 0) {
    out[0].count = out[1].count;
    for (std::size_t k = 0; k < counts::outputs; ++k) out[0].sum += out[total + k].sum;
  }
  if constexpr (layout_of_program<typename Engine::program>.has_regularizers())
    for (const double penalty : engine.penalties()) out[0].sum += detail::rounded(penalty * out[0].count);
  return out;
}

}  // namespace strata::core
