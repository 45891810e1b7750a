// Counts allocations and their bytes, in place of operator new. Not under clang's sanitizers, which replace it themselves.
#pragma once
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define STRATA_TEST_NEW_IS_TAKEN
#endif
#endif
#ifndef STRATA_TEST_NEW_IS_TAKEN

#include <atomic>
#include <cstdlib>
#include <new>

namespace strata::test {
inline std::atomic<long> allocations{0}, bytes_allocated{0};
inline thread_local long bytes_of_thread = 0;

inline void* count_allocation(std::size_t bytes, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  bytes_allocated.fetch_add(long(bytes), std::memory_order_relaxed);
  bytes_of_thread += long(bytes);
  void* p = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
}  // namespace strata::test

[[gnu::noinline]] void* operator new(std::size_t n) { return strata::test::count_allocation(n, 16); }
[[gnu::noinline]] void* operator new(std::size_t n, std::align_val_t a) {
  return strata::test::count_allocation(n, std::size_t(a));
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
#endif
