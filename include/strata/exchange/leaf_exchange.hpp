// Exchanges a few values of each leaf among all processes: metric sums and statistics.
#pragma once
#include <algorithm>
#include <cstddef>
#include <strata/concepts/communicator.hpp>
#include <strata/network/leaves.hpp>

namespace strata::core {

/// After an exchange all processes have the values of each leaf. Call `begin`, then the communicator's wait, then `finish`;
/// `numbers(l)` returns the `width` values of leaf l of `count`.
template <communicator C>
class leaf_exchange {
  typename C::memory all_;
  std::size_t size_ = 0;

 public:
  /// Allocates memory for up to `width` values of up to `leaves` leaves.
  void prepare(C& c, std::size_t width, int leaves) {
    if (width * std::size_t(leaves) <= size_) return;
    size_ = width * std::size_t(leaves);
    all_ = c.allocate(size_ * sizeof(double));
  }

  /// Sends those of this process's share.
  template <class Numbers>
  void begin(C& c, int count, std::size_t width, Numbers&& numbers) {
    const leaf_range share = share_of(count, c.rank(), c.size());
    for (int l = share.begin; l < share.end; ++l) std::copy_n(numbers(l), width, numbers_of(l, width));
    for (int r = 0; r < c.size(); ++r) {
      if (r == c.rank()) continue;
      const leaf_range theirs = share_of(count, r, c.size());
      if (theirs.size() > 0) c.receive(all_, bytes(theirs.begin, width), bytes(theirs.size(), width), r);
      if (share.size() > 0) c.send(all_, bytes(share.begin, width), bytes(share.size(), width), r);
    }
  }
  /// Writes the values of the other processes.
  template <class Numbers>
  void finish(const C& c, int count, std::size_t width, Numbers&& numbers) {
    const leaf_range share = share_of(count, c.rank(), c.size());
    for (int l = 0; l < count; ++l)
      if (l < share.begin || l >= share.end) std::copy_n(numbers_of(l, width), width, numbers(l));
  }

 private:
  double* numbers_of(int leaf, std::size_t width) { return numbers_in<double>(all_) + std::size_t(leaf) * width; }
  static constexpr std::size_t bytes(int leaves, std::size_t width) { return std::size_t(leaves) * width * sizeof(double); }
};

}  // namespace strata::core
