// The factors of the losses of a graph.
#pragma once
#include <array>
#include <cmath>
#include <cstddef>
#include <strata/base/error.hpp>
#include <strata/base/node_name.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/program/metric_sums.hpp>
#include <strata/program/program_of_graph.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace strata::detail {

/// The factors of the losses of a graph. A program without names has none.
template <class Program>
struct loss_weights {};
template <graph_program Program>
struct loss_weights<Program> {
  static constexpr std::size_t outputs = std::size_t(length(typename Program::outputs{}));
  std::array<double, outputs> of_output;

  loss_weights() { of_output.fill(1); }
  /// Throws strata::error for a factor that is not above 0 or not finite.
  void set(int output, double factor) {
    if (!(factor > 0 && std::isfinite(factor))) throw_error({"loss_weight(", factor, "): it must be above 0 and finite"});
    of_output[std::size_t(output)] = factor;
  }
  bool weighs(std::size_t output) const { return of_output[output] != 1; }
  /// ", loss_weight of box 0.2"; empty if all are 1.
  std::string text() const {
    std::string all;
    [&]<class... Node>(type_list<Node...>) {
      std::size_t k = 0;
      const auto add = [&](std::string_view node) {
        if (weighs(k)) all += text_of({", loss_weight of ", node, formatted(" %.9g", of_output[k])});
        ++k;
      };
      (add(node_name<Node>), ...);
    }(typename Program::output_nodes{});
    return all;
  }
  /// Takes the factors out of the sums of the losses of several outputs, which are reported without them; the first sum, that of
  /// all losses, has them.
  void take_from(metric_sums<Program>& sums) const {
    if constexpr (outputs > 1)
      for (std::size_t k = 0; k < outputs; ++k)
        if (weighs(k)) sums[1 + k].sum /= of_output[k];
  }
};

/// A batch whose samples have the factors of the losses as weights.
template <graph_program Program>
class weighted_batch {
  using T = typename Program::value_type;
  static constexpr std::size_t outputs = loss_weights<Program>::outputs;
  std::array<std::vector<T>, outputs> weights_;

 public:
  samples<T> of(samples<T> batch, const loss_weights<Program>& factors) {
    const std::size_t count = std::size_t(batch.count);
    for (std::size_t k = 0; k < outputs; ++k) {
      if (!factors.weighs(k)) continue;
      const T factor = T(factors.of_output[k]), *const own = batch.truths[k].weights;
      weights_[k].assign(count, factor);
      if (own)
        for (std::size_t n = 0; n < count; ++n) weights_[k][n] *= own[n];
      batch.truths[k].weights = weights_[k].data();
    }
    return batch;
  }
};

}  // namespace strata::detail
