// The threads of an engine.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <strata/base/atomic_wait.hpp>
#include <strata/base/error.hpp>
#include <strata/base/exceptions.hpp>
#include <strata/base/grown_array.hpp>
#include <strata/base/linkage.hpp>
#include <strata/base/standard_clock.hpp>
#include <strata/base/standard_thread.hpp>
#include <system_error>
#include <utility>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace strata::core {

/// Denormal numbers are computed as zero during the lifetime of an object. Adam's moments of rarely used inputs decay to denormal
/// numbers, each of which would cost a hundred cycles.
class flush_denormals {
#if defined(__SSE2__)
  unsigned int before_ = _mm_getcsr();

 public:
  flush_denormals() { _mm_setcsr(before_ | 0x8040u); }
  ~flush_denormals() { _mm_setcsr(before_); }
#elif defined(__aarch64__)
  unsigned long before_ = read();
  static unsigned long read() {
    unsigned long value;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }

 public:
  flush_denormals() { asm volatile("msr fpcr, %0" ::"r"(before_ | 1ul << 24)); }
  ~flush_denormals() { asm volatile("msr fpcr, %0" ::"r"(before_)); }
#else
 public:
  flush_denormals() {}
#endif
  flush_denormals(const flush_denormals&) = delete;
  flush_denormals& operator=(const flush_denormals&) = delete;
};

/// `size` threads, including the caller, that share numbered tasks. A phase ends when its tasks are done, not when every thread
/// has arrived: a thread that the system suspends delays the others only if it is in a task.
///
/// Each thread begins with the tasks of its own share, which are the same in every phase with that number of tasks, and helps the
/// others afterwards. What it wrote in one phase is still in its cache in the next one.
class thread_team {
  /// The tasks that are left of a share, in one integer: the phase (its last 16 bits), the end and the next task. Because of the
  /// phase, a late thread cannot take a task of the next phase.
  struct tickets {
    static constexpr int bits = 24;
    static constexpr std::uint64_t mask = (1u << bits) - 1;
    std::uint64_t value = 0;

    static tickets of(unsigned phase, int begin, int end) {
      return {std::uint64_t(phase) << 2 * bits | std::uint64_t(end) << bits | std::uint64_t(begin)};
    }
    bool are_of(unsigned phase) const { return value >> 2 * bits == (phase & 0xFFFF); }
    bool any() const { return (value & mask) < (value >> bits & mask); }
    int next() const { return int(value & mask); }
    tickets rest() const { return {value + 1}; }
  };

  /// The tasks of one thread, on a cache line of its own.
  struct alignas(64) share {
    std::atomic<tickets> left{tickets{}};
  };

  int size_;
  int spins_;  // pauses before a thread sleeps
  void (*run_task_)(void* context, int task, int thread) = nullptr;
  void* context_ = nullptr;
  detail::grown_array<share> shares_;
  detail::grown_array<std::thread> others_;
  // Each on a cache line of its own.
  alignas(64) std::atomic<int> unfinished_{0};  // tasks of the phase
  alignas(64) std::atomic<unsigned> phase_{0};
  std::atomic<bool> stop_{false};

  /// Pauses that take longer than the time between two phases of a step, and far less than a user notices. They are measured,
  /// because a pause takes 4 cycles on some processors and 140 on others.
  static int spins_for(std::chrono::microseconds time);

  /// Rounded up: if there are fewer tasks than threads, the caller, which is awake, has one.
  int share_begin(int count, int thread) const { return int((std::int64_t(count) * thread + size_ - 1) / size_); }

  /// Takes tasks of a phase, its own first. Each look at the share of another thread costs a cache line, so a thread stops when
  /// the phase is over. A late thread may be wrong about that, but the caller is not, and takes the tasks that are left.
  void help(int thread, unsigned phase);
  /// Returns whether tasks of the phase may be left in other shares.
  bool take(share& from, int thread, unsigned phase);

  void work(int thread);

 public:
  /// Pauses a thread that waits in a loop.
  static void pause() {
#if defined(__SSE2__)
    _mm_pause();
#endif
  }

  explicit thread_team(int size);
  thread_team(const thread_team&) = delete;
  thread_team& operator=(const thread_team&) = delete;
  ~thread_team() { end(); }

  int size() const { return size_; }
  /// The number of pauses after which a waiting thread sleeps.
  int spins() const { return spins_; }

  /// Calls f(task, thread) for tasks 0 ... count-1, each on one thread, and returns when all are done. There may be up to 2^24 -
  /// 1 tasks. f must not throw.
  template <class F>
  void for_tasks(int count, F&& f) {
    for_tasks(
        count, [](void* context, int task, int thread) { (*static_cast<std::remove_reference_t<F>*>(context))(task, thread); },
        &f);
  }

 private:
  void end();

  using task_function = void (*)(void* context, int task, int thread);

  void for_tasks(int count, task_function f, void* context);
};

/// The number of threads that this process may use.
inline int available_cores() {
  const unsigned n = std::thread::hardware_concurrency();
  return n == 0 ? 1 : int(n);
}

}  // namespace strata::core

#if STRATA_DEFINES
#include <strata/cpu/engine/team.ipp>
#endif
