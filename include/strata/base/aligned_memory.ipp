// Definitions of aligned_memory.hpp.
#pragma once
#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#endif

namespace strata::detail {

STRATA_FUNCTION aligned_memory::aligned_memory(std::size_t bytes) {
  constexpr std::size_t huge_page = 2 << 20;
#ifdef MADV_HUGEPAGE
  constexpr bool has_huge_pages = true;
#else
  constexpr bool has_huge_pages = false;
#endif
  const bool large = has_huge_pages && bytes > huge_page / 2;
  if (large) bytes = (bytes + huge_page - 1) / huge_page * huge_page, alignment_ = std::align_val_t(huge_page);
  begin_ = ::operator new[](bytes, alignment_);
#ifdef MADV_HUGEPAGE
  if (large) ::madvise(begin_, bytes, MADV_HUGEPAGE);  // a hint: it may fail
#endif
}

STRATA_FUNCTION void aligned_memory::release() { ::operator delete[](begin_, alignment_); }

}  // namespace strata::detail
