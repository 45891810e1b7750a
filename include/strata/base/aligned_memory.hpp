// Memory that is aligned for every vector unit, in huge pages where it is large.
#pragma once
#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#endif

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

namespace strata::detail {

template <class T>
struct aligned_delete {
  std::align_val_t alignment{64};
  void operator()(T* p) const { ::operator delete[](p, alignment); }
};
template <class T>
using aligned_memory = std::unique_ptr<T[], aligned_delete<T>>;

/// n values of T at a multiple of 64 bytes, not initialised. More than 1 MB asks for pages of 2 MB, so that a pass over the
/// memory, or a random access, misses the TLB less often.
template <class T>
  requires std::is_trivially_copyable_v<T>
aligned_memory<T> allocate_aligned(std::size_t n) {
  constexpr std::size_t huge_page = 2 << 20;
#ifdef MADV_HUGEPAGE
  constexpr bool has_huge_pages = true;
#else
  constexpr bool has_huge_pages = false;
#endif
  std::size_t bytes = n * sizeof(T);
  const bool large = has_huge_pages && bytes > huge_page / 2;
  if (large) bytes = (bytes + huge_page - 1) / huge_page * huge_page;
  const aligned_delete<T> release{std::align_val_t(large ? huge_page : 64)};
  aligned_memory<T> memory(static_cast<T*>(::operator new[](bytes, release.alignment)), release);
#ifdef MADV_HUGEPAGE
  if (large) ::madvise(memory.get(), bytes, MADV_HUGEPAGE);  // a hint: it may fail
#endif
  return memory;
}

/// The same, shared and freed with the last copy.
template <class T>
std::shared_ptr<T> allocate_shared_aligned(std::size_t n) {
  aligned_memory<T> memory = allocate_aligned<T>(n);
  const aligned_delete<T> release = memory.get_deleter();
  return {memory.release(), release};
}

}  // namespace strata::detail
