// Accumulates durations.
#pragma once
#include <strata/base/standard_clock.hpp>

namespace strata::detail {

/// Adds the duration of its lifetime to a sum.
class stopwatch {
  using clock = std::chrono::steady_clock;
  double& sum_;
  clock::time_point began_ = clock::now();

 public:
  explicit stopwatch(double& sum) : sum_(sum) {}
  ~stopwatch() { sum_ += std::chrono::duration<double>(clock::now() - began_).count(); }
  stopwatch(const stopwatch&) = delete;
  stopwatch& operator=(const stopwatch&) = delete;
};

}  // namespace strata::detail
