// Which leaves of a global batch a process computes, and how what it has is added to what the others have: as if one process had
// added all leaves in one binary tree.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <strata/cpu/update.hpp>

namespace strata {

/// Leaves [begin, end).
struct leaf_range {
  int begin = 0, end = 0;

  constexpr int size() const { return end - begin; }
  friend constexpr bool operator==(leaf_range, leaf_range) = default;
};

/// The share of process `rank` of `processes`: in order, sizes that differ by one at most.
constexpr leaf_range share_of(int leaves, int rank, int processes) {
  return {int(long(leaves) * rank / processes), int(long(leaves) * (rank + 1) / processes)};
}

/// Parts of a range that are whole subtrees of the binary tree over all leaves: 1 ... 4 is the leaf 1, the leaves 2 and 3, and
/// the leaf 4. A process that adds up the leaves of a subtree does what the one process would have done.
class subtrees {
 public:
  /// So many at most: sizes grow up to one that is followed by smaller ones.
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

/// Adds up subtrees that come in the order of their leaves: add(a, b) means a += b, where the places a < b are numbers of
/// subtrees. At the end all is in place 0. The last leaf of the tree may be missing at any height, as in the tree over a number
/// of leaves that is no power of two.
template <class Parts, class Add>
constexpr void add_in_tree(const Parts& parts, int count, Add&& add) {
  struct node {
    int place, begin, size;
  };
  std::array<node, std::bit_width(unsigned(max_leaves)) + 1> open{};  // each is smaller than the one before, but for the last
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
constexpr double sum_in_tree(Value&& value, int first, int count) {
  if (count == 1) return value(first);
  const int left = int(std::bit_floor(unsigned(count - 1)));
  return sum_in_tree(value, first, left) + sum_in_tree(value, first + left, count - left);
}

}  // namespace strata
