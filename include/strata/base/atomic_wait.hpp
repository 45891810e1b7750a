// Waiting until another thread changes an atomic integer.
#pragma once
#include <atomic>
#if defined(__GLIBCXX__) && !defined(_GLIBCXX_HAVE_LINUX_FUTEX)
#define STRATA_OWN_ATOMIC_WAIT
#include <condition_variable>
#include <cstdint>
#include <mutex>
#endif

namespace strata::detail {

#ifdef STRATA_OWN_ATOMIC_WAIT
// On systems without a futex, such as Windows, std::atomic::wait of libstdc++ loads the value first and then puts the thread to
// sleep: a thread that is notified in between sleeps forever.

/// A condition variable shared by the threads that wait for one of many atomics.
struct sleeping_place {
  std::atomic<int> sleepers{0};
  std::mutex mutex;
  std::condition_variable changed;
};
inline sleeping_place& sleeping_place_of(const void* number) {
  static sleeping_place places[16];
  return places[reinterpret_cast<std::uintptr_t>(number) / 64 % 16];
}

template <class T>
void wait_while(const std::atomic<T>& number, T seen, std::memory_order order) {
  if (number.load(order) != seen) return;
  sleeping_place& here = sleeping_place_of(&number);
  here.sleepers.fetch_add(1);
  {
    std::unique_lock lock(here.mutex);
    here.changed.wait(lock, [&] { return number.load(std::memory_order_seq_cst) != seen; });
  }
  here.sleepers.fetch_sub(1);
}
template <class T>
void wake_all(std::atomic<T>& number) {
  sleeping_place& here = sleeping_place_of(&number);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (here.sleepers.load() == 0) return;
  {
    const std::lock_guard lock(here.mutex);
  }
  here.changed.notify_all();
}
template <class T>
void wake_one(std::atomic<T>& number) {
  wake_all(number);  // other atomics may share the condition variable
}
#undef STRATA_OWN_ATOMIC_WAIT
#else

/// Returns when the value differs from `seen`.
template <class T>
void wait_while(const std::atomic<T>& number, T seen, std::memory_order order) {
  number.wait(seen, order);
}
/// Wakes all waiting threads, after a read-modify-write of the value, see cpu/engine/progress_counter.hpp.
template <class T>
void wake_all(std::atomic<T>& number) {
  number.notify_all();
}
/// Wakes one waiting thread.
template <class T>
void wake_one(std::atomic<T>& number) {
  number.notify_one();
}
#endif

}  // namespace strata::detail
