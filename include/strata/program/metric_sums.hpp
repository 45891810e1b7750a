// The sums that a step reports: of the loss and of each metric.
#pragma once
#include <array>
#include <strata/base/meta.hpp>
#include <strata/concepts/metric.hpp>
#include <strata/program/program.hpp>

namespace strata {

namespace detail {
/// The number of (sum, count) pairs that the metrics of one output need.
template <class Program, class... M>
constexpr std::size_t pairs_of_metrics([[maybe_unused]] std::size_t output, type_list<M...>) {
  if constexpr ((adds_several<M> || ...))
    return (pairs_of_sums<M>(int(ends_of_program<Program>.outputs[output])) + ... + 0);
  else
    return sizeof...(M);
}

/// Numbers of pairs of sums. A leaf has one for the loss of each output, then those for the metrics of each output.
template <class Program>
struct sum_counts {
  static constexpr std::size_t outputs = std::size_t(length(typename Program::outputs{})),
                               metrics =
                                   []<class... Output>(type_list<Output...>) {
                                     std::size_t output = 0, pairs = 0;
                                     ((pairs += pairs_of_metrics<Program>(output++, typename Output::metrics{})), ...);
                                     return pairs;
                                   }(typename Program::outputs{}),
                               of_leaf = outputs + metrics, reported = outputs > 1 ? 1 + of_leaf : of_leaf;
};
}  // namespace detail

namespace core {
/// (sum, count) over the global batch: of the loss, summed over all outputs; if there are several outputs, of the loss of each;
/// then of each metric, output by output. A metric with sums of its own stores them in as many pairs as it needs.
template <class Program>
using metric_sums = std::array<metric_sum, detail::sum_counts<Program>::reported>;
}  // namespace core

}  // namespace strata
