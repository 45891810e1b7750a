// An optimizer, the number of its updates, and the learning rate of the next one.
#pragma once
#include <optional>
#include <strata/optimizers/validation.hpp>
#include <utility>

namespace strata::core {

/// Part of an executor: the only place where the step and the learning rate are kept. The rate is the one set by hand, or else
/// that of the optimizer's schedule at the current step.
template <class Optimizer>
class counted_optimizer {
 public:
  explicit counted_optimizer(Optimizer optimizer) : optimizer_(std::move(optimizer)) {}

  const Optimizer& optimizer() const { return optimizer_; }

  /// The number of updates of the current parameters so far.
  long step() const { return step_; }
  void set_step(long step) { step_ = step; }

  /// The rate of the next update.
  double learning_rate() const { return rate_by_hand_ ? *rate_by_hand_ : optimizer_.learning_rate(step_); }
  /// Replaces the schedule by a constant rate. Throws strata_error if it is negative or not finite.
  void set_learning_rate(double rate) {
    detail::check_at_least_0(Optimizer::name, "learning_rate", rate);
    rate_by_hand_ = rate;
  }
  /// Empty while the schedule decides.
  std::optional<double> learning_rate_by_hand() const { return rate_by_hand_; }

 protected:
  /// For an executor whose weights are a copy: reading them may fetch newer ones, together with the step that belongs to them.
  void refresh_step(long step) const { step_ = step; }

 private:
  Optimizer optimizer_;
  mutable long step_ = 0;
  std::optional<double> rate_by_hand_;
};

}  // namespace strata::core
