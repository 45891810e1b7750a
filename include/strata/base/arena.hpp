// A flat block of numbers whose start is aligned for every vector unit.
#pragma once
#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

namespace strata {

/// Zeroed memory at a multiple of 64 bytes. Growing loses the contents.
template <class T>
class arena {
  static_assert(std::is_trivially_copyable_v<T>);
  static constexpr std::size_t huge_page = 2 << 20;
#ifdef MADV_HUGEPAGE
  static constexpr bool asks_for_pages = true;
#else
  static constexpr bool asks_for_pages = false;
#endif

  struct deleter {
    std::align_val_t alignment{64};
    void operator()(T* p) const { ::operator delete[](p, alignment); }
  };
  std::unique_ptr<T[], deleter> data_;
  std::size_t size_ = 0;

  /// Large ones ask for pages of 2 MB: passes over memory need not look up the place of each 4 KB then.
  static std::unique_ptr<T[], deleter> allocate(std::size_t bytes) {
    const bool large = asks_for_pages && bytes > huge_page / 2;
    if (large) bytes = (bytes + huge_page - 1) / huge_page * huge_page;
    const deleter release{std::align_val_t(large ? huge_page : 64)};
    std::unique_ptr<T[], deleter> data(static_cast<T*>(::operator new[](bytes, release.alignment)), release);
#ifdef MADV_HUGEPAGE
    if (large) ::madvise(data.get(), bytes, MADV_HUGEPAGE);  // a hint: it may fail
#endif
    return data;
  }

 public:
  arena() = default;
  explicit arena(std::size_t size) : data_(allocate(std::max<std::size_t>(size, 1) * sizeof(T))), size_(size) {
    std::fill_n(data_.get(), size, T{});
  }
  void grow(std::size_t size) {
    if (size > size_) *this = arena(size);
  }
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  std::span<T> span() { return {data(), size_}; }
  std::span<const T> span() const { return {data(), size_}; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
};

}  // namespace strata
