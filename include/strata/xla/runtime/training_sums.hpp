// The sums of loss and metrics of training steps.
#pragma once
#include <cstddef>
#include <strata/program/metric_sums.hpp>
#include <strata/program/step_result.hpp>
#include <strata/xla/runtime/running_module.hpp>
#include <strata/xla/runtime/unread_sums.hpp>
#include <vector>

namespace strata::detail {

/// The sums of calls lie on the devices until they are asked for. Those of the last steps are kept.
template <class Program>
class training_sums {
  struct sums_of_step {
    long number = 0;
    metric_sums<Program> sums{};
  };
  static constexpr std::size_t most_ = std::size_t(most_pending_results);  // steps
  unread_sums<Program> unread_;
  std::vector<sums_of_step> read_ = std::vector<sums_of_step>(most_);  // step n is at n % most_

 public:
  /// Adds the sums of a call that has begun, whose first step has this number.
  void add(const running_module& m, module_call& call, long number) {
    if (unread_.size() == most_) unread_.drop_first();
    unread_.add(m, call, number);
  }
  /// Drops what has not been read, of calls that failed.
  void clear() { unread_.clear(); }
  /// Those of a step. await() returns when all calls have ended. Throws plugin_error, and strata_error for a lost step.
  template <class Await>
  metric_sums<Program> of_step(long number, Await&& await) {
    const sums_of_step& step = read_[std::size_t(number) % most_];
    if (step.number != number) {
      await();
      unread_.read([&](long n, const metric_sums<Program>& sums) { read_[std::size_t(n) % most_] = {n, sums}; });
    }
    if (step.number != number) refuse_lost_sums(number);
    return step.sums;
  }
};

}  // namespace strata::detail
