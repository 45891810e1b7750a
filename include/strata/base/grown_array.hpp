// An array that grows. Each instantiation of std::vector costs a program some 50 functions, which take 20 ms to compile.
#pragma once
#include <cstddef>
#include <utility>

namespace strata::detail {

/// Elements are default-constructed, and moved when the array grows. It never shrinks.
template <class T>
class grown_array {
  T* first_ = nullptr;
  std::size_t size_ = 0;

 public:
  grown_array() = default;
  explicit grown_array(std::size_t size) : first_(new T[size]()), size_(size) {}
  grown_array(grown_array&& from) noexcept : first_(std::exchange(from.first_, nullptr)), size_(std::exchange(from.size_, 0)) {}
  /// By reference: in a template, clang 14 does not destroy a by-value argument made of {}.
  grown_array& operator=(grown_array&& from) noexcept {
    grown_array old(std::move(*this));
    std::swap(first_, from.first_);
    std::swap(size_, from.size_);
    return *this;
  }
  ~grown_array() { delete[] first_; }

  /// Grows to at least `size` elements.
  void grow(std::size_t size) {
    if (size <= size_) return;
    grown_array larger(size);
    for (std::size_t i = 0; i < size_; ++i) larger.first_[i] = std::move(first_[i]);
    *this = std::move(larger);
  }

  std::size_t size() const { return size_; }
  T* data() { return first_; }
  const T* data() const { return first_; }
  T* begin() { return first_; }
  const T* begin() const { return first_; }
  T* end() { return first_ + size_; }
  const T* end() const { return first_ + size_; }
  T& operator[](std::size_t i) { return first_[i]; }
  const T& operator[](std::size_t i) const { return first_[i]; }
};

}  // namespace strata::detail
