// The sums of loss and metrics of training steps: of each, or added up over an epoch.
#pragma once
#include <cmath>
#include <cstddef>
#include <strata/program/metric_sums.hpp>
#include <strata/xla/runtime/running_module.hpp>
#include <strata/xla/runtime/unread_sums.hpp>

namespace strata::detail {

/// The sums of calls lie on the devices until they are asked for. What reads them throws plugin_error.
template <class Program>
class training_sums {
  static constexpr std::size_t max_unread = 256;  // calls
  unread_sums<Program> unread_;                   // of the calls that totals_ lacks
  totals_of_steps<Program> totals_;
  long steps_ = 0;  // of the totals

 public:
  /// The totals are these; the steps after them are counted from 1 on.
  void begin_totals(const metric_sums<Program>& so_far) {
    totals_ = {.sums = so_far};
    steps_ = 0;
    unread_.clear();
  }
  /// Drops the sums that have not been read.
  void clear() { unread_.clear(); }
  /// Before a call begins, when all calls before it have ended but the last one: reads those that have ended, if there are many.
  void make_room() {
    if (unread_.size() == max_unread) read_totals(max_unread - 1);
  }
  /// Adds the sums of a call that has begun.
  void add(const running_module& m, module_call& call) { unread_.add(m, call); }

  /// The totals, with the sums of all calls.
  const totals_of_steps<Program>& totals() {
    read_totals(unread_.size());
    return totals_;
  }
  /// The sums of the last step alone.
  metric_sums<Program> of_last_step() {
    metric_sums<Program> sums{};
    unread_.read(unread_.size(), [&](const metric_sums<Program>& of_step) { sums = of_step; });
    return sums;
  }

 private:
  void read_totals(std::size_t calls) {
    unread_.read(calls, [this](const metric_sums<Program>& of_step) {
      for (std::size_t k = 0; k < of_step.size(); ++k) totals_.sums[k] += of_step[k];
      ++steps_;
      totals_.last_loss = of_step[0].mean();
      if (totals_.first_bad_step == 0 && !std::isfinite(totals_.last_loss)) totals_.first_bad_step = steps_;
    });
  }
};

}  // namespace strata::detail
