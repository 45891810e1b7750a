// The calls of modules that may not have ended, and the steps from which their arguments are sent.
#pragma once
#include <algorithm>
#include <strata/base/exceptions.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/xla/pjrt/client.hpp>
#include <strata/xla/runtime/running_module.hpp>
#include <strata/xla/runtime/shared_calls.hpp>
#include <utility>

namespace strata::detail {

/// While a training call runs, steps are staged for the next one, which may begin; at most two calls are in flight. A call of
/// another module begins and ends alone. Functions that wait throw the error of a failed call and, among processes,
/// communication_error if another process is lost meanwhile; then nothing is waited for any longer.
template <class Connections>
class calls_in_flight {
  device_state& state_;
  shared_calls<Connections> shared_;
  module_call training_[2];  // the last ones
  unsigned begun_ = 0;
  staged_steps staged_[2];  // of the next launch, and of the one before, which may still be sent
  unsigned launches_ = 0;
  running_module* staged_for_ = nullptr;
  int staged_samples_ = 0;  // of the last staged step
  module_call other_;
  staged_steps other_batch_;

 public:
  /// The state, which the calls change, must outlive them.
  calls_in_flight(device_state& state, Connections connections) : state_(state), shared_(std::move(connections)) {}

  /// Copies a step and stages it. All staged steps are for one module.
  void stage(running_module& m, const host_arguments& from) {
    if (staged() == 0) await_sends(next());
    next().add(m, from);
    staged_for_ = &m;
    staged_samples_ = from.count;
  }
  /// The number of staged steps.
  int staged() const { return staged_[launches_ % 2].steps(); }
  /// The module of the last staged step; null before the first one.
  running_module* staged_for() const { return staged_for_; }
  /// Drops the staged steps.
  void clear_staged() { next().clear(); }
  /// Drops the staged steps after an error with which a call could not begin. Throws the cause of that error, if it is known:
  /// another process is lost, or an earlier call has failed.
  void fail_launch() {
    clear_staged();
    await_sends(next());
    next().forget();
    shared_.refuse_lost_processes();
    await();
  }
  /// All staged steps have begun: later ones are staged for the next launch.
  void end_launch() {
    clear_staged();
    ++launches_;
  }

  /// Returns when all training calls but the last one have ended.
  void await_all_but_last() { wait_for(training_[begun_ % 2]); }
  /// Returns when all training calls have ended.
  void await() {
    await_all_but_last();
    wait_for(last());
  }
  /// Begins a training call with some of the staged steps; see running_module::begin. At most one earlier call may be running.
  module_call& begin(running_module& m, int first, int steps) {
    module_call& call = training_[begun_ % 2];
    m.begin(state_, next(), first, steps, call);
    call.shared = shared_.has_begun(steps > 1 ? "a loop of training steps" : "a training step", staged_samples_);
    ++begun_;
    return call;
  }
  /// The training call that began last.
  module_call& last() { return training_[(begun_ + 1) % 2]; }

  /// Runs a call of another module to its end. Training calls must have ended. `what`: a string literal that names a call of all
  /// processes; null: this process computes it alone.
  module_call& run(running_module& m, const host_arguments& from, const char* what) {
    other_batch_.clear();
    other_batch_.add(m, from);
    m.begin(state_, other_batch_, 0, 1, other_);
    other_.shared = what ? shared_.has_begun(what, from.count) : shared_call{};
    wait_for(other_);
    return other_;
  }

  /// Among processes, before this is destroyed. Calls that may never end are given up, the others are waited for as long as for a
  /// message.
  void end(bool may_wait) noexcept {
    STRATA_TRY {
      const auto have_ended = [this] { return this->have_ended(); };
      STRATA_TRY {
        if (may_wait) shared_.await_end(have_ended);
      }
      STRATA_CATCH(const communication_error& failure) {}
      if (!have_ended()) give_up();
    }
    STRATA_CATCH_ALL {}  // of the plugin or of memory: what could not be given up is waited for
  }

 private:
  staged_steps& next() { return staged_[launches_ % 2]; }
  void wait_for(module_call& call) {
    STRATA_TRY {
      call.wait(state_, [&](const pjrt::event& e) { shared_.await(e, call.shared); });
    }
    STRATA_CATCH(const communication_error& failure) {
      give_up();
      STRATA_THROW_AGAIN;
    }
    STRATA_CATCH(const pjrt::plugin_error& failure) {
      shared_.refuse_lost_processes();
      STRATA_THROW_AGAIN;
    }
  }
  /// Among processes returns when nothing reads these steps.
  void await_sends(const staged_steps& from) {
    STRATA_TRY {
      for (const pjrt::event& e : from.sent()) shared_.await(e, shared_.last());
    }
    STRATA_CATCH(const communication_error& failure) {
      give_up();
      STRATA_THROW_AGAIN;
    }
  }
  bool have_ended() const {
    const auto is_ready = [](const pjrt::event& e) { return e.is_ready(); };
    for (const module_call* each : {&training_[0], &training_[1], &other_})
      if (!each->has_ended()) return false;
    for (const staged_steps* each : {&staged_[0], &staged_[1], &other_batch_})
      if (!std::ranges::all_of(each->sent(), is_ready)) return false;
    return true;
  }
  /// Stops waiting for calls and transfers, and leaves their memory to the devices.
  void give_up() {
    for (module_call* each : {&training_[0], &training_[1], &other_}) each->give_up();
    for (staged_steps* each : {&staged_[0], &staged_[1], &other_batch_}) each->give_up();
  }
};

}  // namespace strata::detail
