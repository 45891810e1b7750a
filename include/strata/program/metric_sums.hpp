// The sums that a step reports: of the loss and of each metric.
#pragma once
#include <array>
#include <strata/base/meta.hpp>
#include <strata/concepts/metric.hpp>

namespace strata {

namespace detail {
/// Numbers of sums. A leaf has one for the loss of each output, then those for the metrics of each output.
template <class Program>
struct sum_counts {
  static constexpr std::size_t outputs = std::size_t(length(typename Program::outputs{})),
                               metrics =
                                   []<class... Output>(type_list<Output...>) {
                                     return (std::size_t(length(typename Output::metrics{})) + ...);
                                   }(typename Program::outputs{}),
                               of_leaf = outputs + metrics, reported = outputs > 1 ? 1 + of_leaf : of_leaf;
};
}  // namespace detail

/// (sum, count) over the global batch: of the loss, which is the sum of those of all outputs; if there are several outputs, of
/// the loss of each; then of each metric, output by output.
template <class Program>
using metric_sums = std::array<metric_sum, detail::sum_counts<Program>::reported>;

}  // namespace strata
