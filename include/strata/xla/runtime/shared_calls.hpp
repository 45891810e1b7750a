// The calls on devices that all processes of a training begin: this process waits for them, and notices meanwhile that another
// one is lost.
#pragma once
#include <algorithm>
#include <chrono>
#include <strata/communicators/wait_state.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/xla/pjrt/client.hpp>
#include <thread>
#include <utility>

namespace strata::detail {

/// Connections: copied from the executor, so that waiting for devices does not count as communication.
template <class Connections>
class shared_calls {
  static constexpr std::chrono::microseconds max_pause{1000};
  Connections connections_;
  shared_call last_{};

 public:
  explicit shared_calls(Connections connections) : connections_(std::move(connections)) {}

  /// Announces that this process has begun the next call.
  shared_call has_begun(const char* what, int samples) {
    last_ = {last_.number + 1, what, samples};
    connections_.has_begun(last_);
    return last_;
  }
  const shared_call& last() const { return last_; }

  /// Waits without a time limit while all processes are alive and will begin the call. Throws communication_error.
  void await(const pjrt::event& e, const shared_call& call) {
    if (e.is_ready()) return;
    const auto began = std::chrono::steady_clock::now();
    const auto waits = connections_.await_call(call);
    for (auto pause = std::chrono::microseconds(20); !e.is_ready(); pause = std::min(2 * pause, max_pause)) {
      std::this_thread::sleep_for(pause);
      connections_.check_call(call, began);
    }
  }
  /// Waits for the last ones as long as for a message. Throws communication_error.
  template <class F>
  void await_end(const F& have_ended) {
    for (const auto began = connections_.time(); !have_ended(); std::this_thread::sleep_for(max_pause))
      connections_.check("the last steps on the devices", began);
  }
  /// Throws communication_error if another process is lost, which may be why a plugin fails.
  void refuse_lost_processes() { connections_.check("a step on the devices", connections_.time()); }
};

/// The version for one process, in which the plugin waits.
template <>
class shared_calls<alone> {
 public:
  explicit shared_calls(alone) {}
  static shared_call has_begun(const char*, int) { return {}; }
  static shared_call last() { return {}; }
  static void await(const pjrt::event&, const shared_call&) {}
  static void refuse_lost_processes() {}
};

}  // namespace strata::detail
