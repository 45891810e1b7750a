// A vector at a multiple of 64 bytes that allocates exactly the bytes of its elements, so that AddressSanitizer detects every
// access beyond them (strata::core::arena rounds large sizes up to whole pages).
#pragma once
#include <cstddef>
#include <new>
#include <vector>

namespace strata::test {

template <class T>
struct aligned_allocator {
  using value_type = T;
  aligned_allocator() = default;
  template <class U>
  aligned_allocator(const aligned_allocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(64))); }
  void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t(64)); }
  bool operator==(const aligned_allocator&) const = default;
};
template <class T>
using aligned_vector = std::vector<T, aligned_allocator<T>>;

}  // namespace strata::test
