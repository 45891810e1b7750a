// A flat block of elements whose start is aligned for every vector unit.
#pragma once
#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <strata/base/aligned_memory.hpp>
#include <type_traits>

namespace strata {

namespace core {
/// Zeroed memory at a multiple of 64 bytes. Growing loses the contents.
template <class T>
class arena {
  static_assert(std::is_trivially_copyable_v<T>);

  detail::aligned_memory memory_;
  std::size_t size_ = 0;

 public:
  arena() = default;
  explicit arena(std::size_t size) : memory_(std::max<std::size_t>(size, 1) * sizeof(T)), size_(size) {
    std::fill_n(data(), size, T{});
  }
  /// Returns true if the memory had to grow.
  bool grow(std::size_t size) {
    if (size <= size_) return false;
    *this = arena(size);
    return true;
  }
  T* data() { return static_cast<T*>(memory_.begin()); }
  const T* data() const { return static_cast<const T*>(memory_.begin()); }
  std::size_t size() const { return size_; }
  std::span<T> span() { return {data(), size_}; }
  std::span<const T> span() const { return {data(), size_}; }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
};

/// A range of elements of an arena.
struct element_range {
  long begin = 0, end = 0;
  constexpr long size() const { return end - begin; }
};

/// Elements [begin, end) of an arena, stored in a smaller array from element `at` on.
struct arena_slice {
  long begin = 0, end = 0, at = 0;
  constexpr long size() const { return end - begin; }
};
/// The number of elements of that array.
constexpr long elements_of(std::span<const arena_slice> slices) {
  return slices.empty() ? 0 : slices.back().at + slices.back().size();
}
}  // namespace core

namespace detail {
/// Marks fresh memory that must be written before it is read. With STRATA_POISON, as in tests, fills it with signalling NaNs.
template <class T>
void poison([[maybe_unused]] std::span<T> fresh) {
#ifdef STRATA_POISON
  std::ranges::fill(fresh, std::numeric_limits<T>::signaling_NaN());
#endif
}
}  // namespace detail

}  // namespace strata
