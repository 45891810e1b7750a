// timed: measures how long a communicator takes.
#pragma once
#include <cstddef>
#include <strata/base/stopwatch.hpp>
#include <strata/concepts/communicator.hpp>
#include <utility>

namespace strata::detail {

/// Behaves like C, and measures the times.
template <communicator C>
class timed : public C {
  double communicating_ = 0, waiting_ = 0;

 public:
  using memory = typename C::memory;

  timed(C c) : C(std::move(c)) {}

  void send(memory& from, std::size_t offset, std::size_t bytes, int to) {
    const stopwatch running(communicating_);
    C::send(from, offset, bytes, to);
  }
  void receive(memory& to, std::size_t offset, std::size_t bytes, int from) {
    const stopwatch running(communicating_);
    C::receive(to, offset, bytes, from);
  }
  void wait(const char* what) {
    const stopwatch running(waiting_);
    C::wait(what);
  }
  void wait_received(const char* what, const auto& mark) {
    const stopwatch running(waiting_);
    C::wait_received(what, mark);
  }

  /// Seconds so far, in begun messages and in waits.
  double communicating() const { return communicating_; }
  double waiting() const { return waiting_; }
};

}  // namespace strata::detail
