// A number that one thread raises and others wait for.
#pragma once
#include <atomic>
#include <strata/base/atomic_wait.hpp>
#include <strata/cpu/engine/team.hpp>

namespace strata::core {

/// A counter on a cache line of its own.
class alignas(64) progress_counter {
  std::atomic<int> value_{0};

 public:
  void reset() { value_.store(0, std::memory_order_relaxed); }
  /// Increments the number. Earlier writes of this thread are visible to threads whose wait() has returned.
  void raise() {
    // A read-modify-write, not a store: notify_all of libstdc++ 12 loads the number of waiting threads, and an x86 processor may
    // do so before other processors see a plain store. A thread that begins to wait in between would sleep forever.
    value_.fetch_add(1, std::memory_order_release);
    detail::wake_all(value_);
  }
  /// Returns when the number is at least `least`. Pauses `spins` times, then sleeps.
  void wait(int least, int spins) const {
    for (int spin = 0;; ++spin) {
      const int now = value_.load(std::memory_order_acquire);
      if (now >= least) return;
      if (spin < spins)
        thread_team::pause();
      else
        detail::wait_while(value_, now, std::memory_order_acquire);
    }
  }
};

}  // namespace strata::core
