// What a training step returns where its device computes on while the host goes on: a handle of its metric sums.
#pragma once
#include <strata/base/error.hpp>
#include <strata/program/metric_sums.hpp>

namespace strata {

namespace detail {
/// A launch has at most so many steps. The results of these, and of so many steps before them, can be read later.
inline constexpr long most_steps_of_launch = 1024, most_unread_results = 256;
inline constexpr long most_pending_results = most_steps_of_launch + most_unread_results;
}  // namespace detail

namespace core {
/// The metric sums of a training step, or where they will be. It is valid until its executor is moved or destroyed.
template <class Program>
class step_result {
  metric_sums<Program> sums_{};
  void* from_ = nullptr;  // null: the sums are here
  metric_sums<Program> (*read_)(void* from, long number) = nullptr;
  long number_ = 0;

 public:
  step_result() = default;
  step_result(const metric_sums<Program>& sums) : sums_(sums) {}
  /// from.sums_of_step(number) waits for the step and returns its sums, or throws what get() throws.
  template <class Source>
  step_result(Source& from, long number)
      : from_(&from),
        read_([](void* source, long step) { return static_cast<Source*>(source)->sums_of_step(step); }),
        number_(number) {}

  /// Whether get() need not wait.
  bool is_ready() const { return !from_; }
  /// Waits for the step. Throws the error of the device, if this step or one before has failed there, and strata_error if
  /// the step was never begun, or if too many others have followed it.
  metric_sums<Program> get() const { return from_ ? read_(from_, number_) : sums_; }
};
}  // namespace core

namespace detail {
/// For what computes steps: those that were lost have no sums.
[[noreturn]] inline void refuse_lost_sums(long number) {
  throw_error({"training step ", number, " of this executor was not computed, or too many steps have followed it"});
}
}  // namespace detail

}  // namespace strata
