// The factors of the losses of a graph.
#pragma once
#include <array>
#include <cmath>
#include <cstddef>
#include <strata/base/error.hpp>
#include <strata/base/meta.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/program/metric_sums.hpp>
#include <strata/program/program_of_graph.hpp>
#include <vector>

namespace strata::detail {

/// The factors of the losses of a graph. A program without names has none.
template <class Program>
struct loss_weights {
  static const metric_sums<Program>& reported(const metric_sums<Program>& sums) { return sums; }
};
template <graph_program Program>
struct loss_weights<Program> {
  static constexpr std::size_t outputs = std::size_t(length(typename Program::outputs{}));
  static constexpr auto metric_pairs = []<class... Output>(type_list<Output...>) {
    std::size_t output = 0;
    return std::array<std::size_t, outputs>{pairs_of_metrics<Program>(output++, typename Output::metrics{})...};
  }(typename Program::outputs{});
  std::array<double, outputs> of_output = ones();

  /// Throws strata_error for a factor that is below 0 or not finite.
  void set(int output, double factor) {
    if (!(factor >= 0 && std::isfinite(factor))) throw_error({"loss_weight(", factor, "): it must be finite and at least 0"});
    of_output[std::size_t(output)] = factor;
  }
  bool weighs(std::size_t output) const { return of_output[output] != 1; }
  /// Sets all factors, in the order of the tape; an empty list has none, as that of a snapshot of an older version. Throws
  /// strata_error for another number of factors, and as set does.
  void restore(const std::vector<double>& factors) {
    if (factors.empty()) return;
    if (factors.size() != outputs)
      throw_error({"fit: the position has ", factors.size(), " loss weights, but this graph has ", outputs, " outputs"});
    for (std::size_t k = 0; k < outputs; ++k) set(int(k), factors[k]);
  }
  /// The sums of a step as they are reported: outputs in the order of the graph instead of that of the tape. The first sum, that
  /// of all losses, has their factors; those of several losses do not. Outputs without a loss leave pairs of zeros at the end.
  metric_sums<Program> reported(const metric_sums<Program>& of_tape) const {
    if constexpr (outputs == 1) {
      return of_tape;
    } else {
      metric_sums<Program> all{};
      all[0] = of_tape[0];
      if (of_output != ones()) all[0].sum = weighted_sum(of_tape);
      std::size_t to = 1;
      if constexpr (outputs_in_order<Program>.size() > 1)
        for (const std::size_t k : outputs_in_order<Program>) all[to++] = of_tape[1 + k];
      for (const std::size_t k : outputs_in_order<Program>) {
        std::size_t from = 1 + outputs;
        for (std::size_t before = 0; before < k; ++before) from += metric_pairs[before];
        for (std::size_t i = 0; i < metric_pairs[k]; ++i) all[to++] = of_tape[from + i];
      }
      return all;
    }
  }

 private:
  static std::array<double, outputs> ones() {
    std::array<double, outputs> all;
    all.fill(1);
    return all;
  }
  double weighted_sum(const metric_sums<Program>& of_tape) const {
    double sum = 0, without_factors = 0;
    for (std::size_t k = 0; k < outputs; ++k) {
      sum += of_output[k] * of_tape[1 + k].sum;
      without_factors += of_tape[1 + k].sum;
    }
    if constexpr (layout_of_program<Program>.has_regularizers()) sum += of_tape[0].sum - without_factors;  // their penalties
    return sum;
  }
};

/// Stores a factor in `to` for each sample, times its own weight if there are any, and returns the rows.
template <class T>
const T* weights_times(double factor, const T* own, int count, std::vector<T>& to) {
  to.assign(std::size_t(count), T(factor));
  if (own)
    for (std::size_t n = 0; n < to.size(); ++n) to[n] *= own[n];
  return to.data();
}

/// A batch whose samples have the factors of the losses as weights: of several losses as weights of the gradient, because each is
/// reported without its factor; of a single loss as weights of both.
template <class Program>
struct weighted_batch {
  using T = typename Program::value_type;
  static const samples<T>& of(const samples<T>& batch, const loss_weights<Program>&) { return batch; }
};
template <graph_program Program>
class weighted_batch<Program> {
  using T = typename Program::value_type;
  static constexpr std::size_t outputs = loss_weights<Program>::outputs;
  std::array<std::vector<T>, outputs> weights_;

 public:
  samples<T> of(samples<T> batch, const loss_weights<Program>& factors) {
    for (std::size_t k = 0; k < outputs; ++k)
      if (factors.weighs(k)) {
        truth_rows<T>& truth = batch.truths[k];
        (outputs > 1 ? truth.gradient_weights : truth.weights) =
            weights_times(factors.of_output[k], truth.weights, batch.count, weights_[k]);
      }
    return batch;
  }
};

}  // namespace strata::detail
