// Values of GPUs that are copied to the host when they are first read.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <strata/base/namespaces.hpp>
#include <utility>
#include <vector>

namespace strata::core {

/// Numbers on the host that are copied again after the devices have changed theirs.
class host_copy {
  std::vector<double> numbers_;
  bool is_current_ = true;

 public:
  explicit host_copy(std::size_t size = 0) : numbers_(size) {}
  void grow(std::size_t size) { numbers_.resize(std::max(numbers_.size(), size)); }
  void set_to_zero() { std::ranges::fill(numbers_, 0.0); }
  /// Marks the copy as stale: the devices compute new values.
  void outdate() { is_current_ = false; }
  /// Returns the values. If they are stale, calls copy(numbers) first, which copies them from the devices and waits for that.
  template <class Copy>
  std::span<double> get(Copy&& copy) {
    if (!std::exchange(is_current_, true)) copy(std::span<double>(numbers_));
    return numbers_;
  }
};

}  // namespace strata::core
