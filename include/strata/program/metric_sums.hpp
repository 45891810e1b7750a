// The sums that a step reports: of the loss and of each metric.
#pragma once
#include <array>
#include <strata/base/meta.hpp>
#include <strata/concepts/metric.hpp>

namespace strata {

/// (sum, count) of the loss, then of each metric, over the global batch.
template <class Program>
using metric_sums = std::array<metric_sum, std::size_t(1 + detail::length(typename Program::metrics{}))>;

}  // namespace strata
