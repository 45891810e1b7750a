// learning_rate_scheduler: sets the learning rate of each epoch.
#pragma once
#include <functional>
#include <strata/callbacks/monitor.hpp>
#include <strata/concepts/callback.hpp>
#include <type_traits>
#include <utility>

namespace strata {

/// `learning_rate_scheduler{[](int epoch, double rate) { return epoch < 10 ? rate : rate * 0.9; }}`: the function takes the
/// epoch, from 0, and the current rate, or the epoch alone, and returns the rate of this epoch. It has to be the same function in
/// all processes that train together. (Schedules by step are settings of the optimizer.)
/// https://keras.io/api/callbacks/learning_rate_scheduler
class learning_rate_scheduler {
  std::function<double(int, double)> schedule_;
  int scheduled_ = -1;  // the last epoch whose rate was set

 public:
  static constexpr const char *name = "learning_rate_scheduler", *adds = "learning_rate";

  template <class F>
    requires std::is_invocable_r_v<double, F&, int, double> || std::is_invocable_r_v<double, F&, int>
  explicit learning_rate_scheduler(F schedule) {
    if constexpr (std::is_invocable_r_v<double, F&, int, double>)
      schedule_ = std::move(schedule);
    else
      schedule_ = [f = std::move(schedule)](int epoch, double) mutable { return double(f(epoch)); };
  }

  void on_train_begin(training_state& s) {
    if (!s.resumed) scheduled_ = -1;
  }
  void on_epoch_begin(training_state& s) {
    if (s.epoch == scheduled_) return;  // a fit that was resumed within the epoch has its rate
    s.new_learning_rate = schedule_(s.epoch, s.next_learning_rate());
    scheduled_ = s.epoch;
  }
  void on_epoch_end(training_state& s) { s.values.set("learning_rate", s.learning_rate); }

  logs state() const { return {{"scheduled", double(scheduled_)}}; }
  void set_state(const logs& state) { scheduled_ = detail::count_in(state, "scheduled"); }
};
static_assert(core::stateful_callback<learning_rate_scheduler>);

}  // namespace strata
