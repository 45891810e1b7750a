// SIGTERM, by which schedulers ask a process to end, or SIGINT, as a flag that can be read between two steps.
#pragma once
#include <atomic>
#include <csignal>
#include <functional>
#include <mutex>
#include <strata/io/os.hpp>

namespace strata::detail {

/// While an object exists, the signal sets a flag instead of ending the process. The destructor restores the former handler and
/// raises an unacknowledged signal again, so that none is lost. If the signal was ignored before, it stays ignored.
/// OnlyOnce: a second signal ends the process.
template <int Signal, bool OnlyOnce = false>
class signal_watch {
  struct shared {
    std::mutex mutex;
    int watches = 0;
    std::function<void()> restore{};  // empty if the signal is ignored
    bool acknowledged = false;
  };
  static shared& all() {
    static shared one;
    return one;
  }
  inline static std::atomic<bool> requested_{false};
  static_assert(std::atomic<bool>::is_always_lock_free);

 public:
  signal_watch() {
    shared& s = all();
    const std::lock_guard lock(s.mutex);
    if (s.watches++ > 0) return;
    requested_ = s.acknowledged = false;
    s.restore = io::os::watch_signal(Signal, [](int) { requested_.store(true, std::memory_order_relaxed); }, OnlyOnce);
  }
  signal_watch(const signal_watch&) = delete;
  signal_watch& operator=(const signal_watch&) = delete;
  ~signal_watch() {
    shared& s = all();
    const std::lock_guard lock(s.mutex);
    if (--s.watches > 0 || !s.restore) return;
    s.restore();
    if (requested_ && !s.acknowledged) std::raise(Signal);
  }

  bool requested() const { return requested_.load(std::memory_order_relaxed); }
  /// Declares that the process will end by itself: the signal is not raised again.
  void acknowledge() {
    shared& s = all();
    const std::lock_guard lock(s.mutex);
    s.acknowledged = true;
  }
};
using termination_watch = signal_watch<SIGTERM>;

}  // namespace strata::detail
