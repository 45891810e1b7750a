// The learning rate as a function of the step.
#pragma once
#include <concepts>
#include <strata/base/standard_function.hpp>
#include <type_traits>
#include <utility>

namespace strata {

/// A constant, or a function of the step, which counts from 0. Schedules are in optimizers/schedules.hpp.
class learning_rate_schedule {
  std::function<double(long)> at_;
  const char* name_ = "";
  bool is_number_ = false;

 public:
  learning_rate_schedule(double constant) : at_([constant](long) { return constant; }), is_number_(true) {}
  /// Calls schedule.validate(), if there is one; it throws strata_error for wrong settings. A schedule with a `name` has
  /// a rate for every step: processes that train together compare some of its rates.
  template <class Schedule>
    requires(!std::same_as<std::remove_cvref_t<Schedule>, learning_rate_schedule>) &&
            std::is_invocable_r_v<double, const Schedule&, long>
  learning_rate_schedule(Schedule schedule) {
    if constexpr (requires { schedule.validate(); }) schedule.validate();
    if constexpr (requires { name_ = Schedule::name; }) name_ = Schedule::name;
    at_ = std::move(schedule);
  }

  double operator()(long step) const { return at_(step); }
  /// The name of the schedule; empty for a constant and for a function without a name.
  const char* name() const { return name_; }
  /// Whether the rate is a constant.
  bool is_number() const { return is_number_; }
};

}  // namespace strata
