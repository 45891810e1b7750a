// The division of a global batch into leaves, the leaves of each process, and the binary tree in which sums over leaves are
// added: the same for every device, number of threads and number of processes.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <strata/concepts/row_range.hpp>

namespace strata {

namespace core {
/// The most leaves of a batch, and so the most processes that can share one. Powers of two are fastest.
inline constexpr int max_leaves = 1024;

/// The default number of leaves of a global batch. It depends on the batch and the network only, so that the bits of a step are
/// the same on every machine. Each leaf writes and reads a gradient of its own, which pays off from 32 samples on if each weight
/// is used many times, as in convolutions, and from 64 on if once.
constexpr int default_leaves(int batch, bool reuses_weights) {
  const int worth_it = batch / (reuses_weights ? 32 : 64), least = batch >= 16 ? 2 : 1;
  return std::clamp(int(std::bit_floor(unsigned(worth_it))), least, 16);
}

/// Leaves [begin, end).
struct leaf_range {
  int begin = 0, end = 0;

  constexpr int size() const { return end - begin; }
  friend constexpr bool operator==(leaf_range, leaf_range) = default;
};

/// The leaves of process `rank` of `processes`. Shares are in the order of ranks, and their sizes differ by at most one.
constexpr leaf_range share_of(int leaves, int rank, int processes) {
  return {int(long(leaves) * rank / processes), int(long(leaves) * (rank + 1) / processes)};
}

/// The division of a batch: leaf l holds the samples [l * capacity, (l + 1) * capacity) that exist.
struct batch_division {
  int leaves = 0, capacity = 0;
};

/// Divides batches of any size. Its members are constant in a training, so the bits of a step do not depend on earlier steps.
struct leaf_policy {
  int leaves = 0;               // 0: the larger of default_leaves and `least`
  int least = 1;                // the number of processes
  bool reuses_weights = false;  // see default_leaves

  constexpr batch_division operator()(int count) const {
    const int n = leaves > 0 ? leaves : std::max(default_leaves(count, reuses_weights), least);
    return {n, std::max(1, (count + n - 1) / n)};
  }

  /// The largest number of leaves, and the largest capacity, of all batches of up to `batch` samples.
  constexpr batch_division most(int batch) const {
    batch_division largest;
    for (int count = 1; count <= batch; ++count) {
      const batch_division d = (*this)(count);
      largest = {std::max(largest.leaves, d.leaves), std::max(largest.capacity, d.capacity)};
    }
    return largest;
  }

  /// The rows of a batch of `count` samples that process `rank` computes.
  constexpr row_range samples_of(int count, int rank, int processes) const {
    const auto [n, capacity] = (*this)(count);
    const leaf_range own = share_of(n, rank, processes);
    return {std::min(count, own.begin * capacity), std::min(count, own.end * capacity)};
  }
};
}  // namespace core

namespace detail {
/// A range of leaves as subtrees of the binary tree over all leaves: leaves 1 to 4 are leaf 1, the subtree of leaves 2 and 3, and
/// leaf 4. A process that adds up a subtree adds in the same order as one process with all leaves.
class subtrees {
 public:
  /// The most subtrees of a range: sizes grow to a largest one, then shrink.
  static constexpr int most = 2 * std::bit_width(unsigned(max_leaves));

  constexpr subtrees() = default;
  constexpr explicit subtrees(leaf_range range) {
    for (int at = range.begin; at < range.end;) {
      int size = at == 0 ? int(std::bit_floor(unsigned(range.end))) : 1 << std::countr_zero(unsigned(at));
      while (at + size > range.end) size /= 2;
      parts_[std::size_t(count_++)] = {at, at + size};
      at += size;
    }
  }
  constexpr int count() const { return count_; }
  constexpr leaf_range operator[](int i) const { return parts_[std::size_t(i)]; }

 private:
  std::array<leaf_range, std::size_t(most)> parts_{};
  int count_ = 0;
};
}  // namespace detail

namespace core {
/// Adds up subtrees in the order of their leaves: add(a, b) means a += b, where a < b are indices of subtrees. The result is in
/// subtree 0. The number of leaves need not be a power of two: a subtree without a partner moves up a level.
template <class Parts, class Add>
constexpr void add_in_tree(const Parts& parts, int count, Add&& add) {
  struct node {
    int place, begin, size;
  };
  std::array<node, std::bit_width(unsigned(max_leaves)) + 1> open{};  // sizes decrease, except for the last
  int n = 0;
  const auto merge = [&] {
    add(open[std::size_t(n - 2)].place, open[std::size_t(n - 1)].place);
    --n;
  };
  for (int i = 0; i < count; ++i) {
    open[std::size_t(n++)] = {i, parts(i).begin, parts(i).size()};
    while (n > 1 && open[std::size_t(n - 1)].size == open[std::size_t(n - 2)].size &&
           open[std::size_t(n - 2)].begin % (2 * open[std::size_t(n - 2)].size) == 0) {
      open[std::size_t(n - 2)].size *= 2;
      merge();
    }
  }
  while (n > 1) merge();
}

/// The sum of value(leaf) over the leaves [first, first + count), in the tree over them.
template <class Value>
[[gnu::noinline]] constexpr double sum_in_tree(Value&& value, int first, int count) {
  if (count == 1) return value(first);
  const int left = int(std::bit_floor(unsigned(count - 1)));
  return sum_in_tree(value, first, left) + sum_in_tree(value, first + left, count - left);
}
}  // namespace core

}  // namespace strata
