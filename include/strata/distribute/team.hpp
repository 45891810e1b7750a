// Who computes: one thread, or a persistent team of them.
#pragma once
#include <atomic>
#include <thread>
#include <utility>
#include <vector>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace strata {

/// Denormal numbers are computed as zero while it lives: Adam's moments of rarely used inputs decay into them, and each
/// would cost a hundred cycles.
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

/// A barrier that spins for some microseconds, then sleeps: a busy neighbour must not make the team collapse.
class spinning_barrier {
  static constexpr int spins = 20'000;
  const int parties_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<unsigned> phase_{0};

  static void pause() {
#if defined(__SSE2__)
    _mm_pause();
#endif
  }

 public:
  explicit spinning_barrier(int parties) : parties_(parties) {}

  void arrive_and_wait() {
    if (parties_ == 1) return;
    const unsigned phase = phase_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) == parties_ - 1) {
      arrived_.store(0, std::memory_order_relaxed);
      phase_.store(phase + 1, std::memory_order_release);
      phase_.notify_all();
      return;
    }
    for (int i = 0; i < spins; ++i) {
      if (phase_.load(std::memory_order_acquire) != phase) return;
      pause();
    }
    while (phase_.load(std::memory_order_acquire) == phase) phase_.wait(phase, std::memory_order_acquire);
  }
};

/// `size` threads, the caller among them, that run the same function with ranks 0 .. size-1. Functions must not throw.
class thread_team {
  int size_;
  spinning_barrier gate_, inner_;
  void (*job_)(void*, int) = nullptr;
  void* context_ = nullptr;
  std::vector<std::thread> others_;

  void work(int rank) {
    const flush_denormals scope;
    for (;;) {
      gate_.arrive_and_wait();
      if (!job_) return;
      job_(context_, rank);
      gate_.arrive_and_wait();
    }
  }

 public:
  explicit thread_team(int size) : size_(size < 1 ? 1 : size), gate_(size_), inner_(size_) {
    for (int rank = 1; rank < size_; ++rank) others_.emplace_back([this, rank] { work(rank); });
  }
  thread_team(const thread_team&) = delete;
  thread_team& operator=(const thread_team&) = delete;
  ~thread_team() {
    job_ = nullptr;
    gate_.arrive_and_wait();
    for (std::thread& t : others_) t.join();
  }

  int size() const { return size_; }
  /// Only inside run: all ranks must come by.
  void barrier() { inner_.arrive_and_wait(); }

  template <class F>
  void run(F&& f) {
    const flush_denormals scope;
    job_ = [](void* context, int rank) { (*static_cast<std::remove_reference_t<F>*>(context))(rank); };
    context_ = &f;
    gate_.arrive_and_wait();
    f(0);
    gate_.arrive_and_wait();
  }
};

/// Threads that this process may use.
inline int available_cores() {
  const unsigned n = std::thread::hardware_concurrency();
  return n == 0 ? 1 : int(n);
}

}  // namespace strata
