// A flat block of numbers whose start is aligned for every vector unit.
#pragma once
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
  static constexpr std::align_val_t alignment{64};
  struct deleter {
    void operator()(T* p) const { ::operator delete[](p, alignment); }
  };
  std::unique_ptr<T[], deleter> data_;
  std::size_t size_ = 0;

 public:
  arena() = default;
  explicit arena(std::size_t size)
      : data_(static_cast<T*>(::operator new[](std::max<std::size_t>(size, 1) * sizeof(T), alignment))), size_(size) {
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
