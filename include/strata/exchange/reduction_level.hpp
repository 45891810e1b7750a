// A level of a tree_reduction: its group of processes, its memory, and the indices of elements in that.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <strata/base/arena.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/exchange/gradient_bucket.hpp>
#include <strata/exchange/reduction_groups.hpp>
#include <strata/network/leaves.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <utility>
#include <vector>

namespace strata::detail {

/// The buckets of a reduction, and the indices of their elements in arrays of sums: as in the arena, or in one of two windows,
/// which buckets use in turn.
class bucket_layout {
  std::vector<gradient_bucket> buckets_;
  long window_ = 0;  // elements of the largest bucket; 0: there are no windows

 public:
  bucket_layout() = default;
  bucket_layout(std::vector<gradient_bucket> buckets, bool in_windows) : buckets_(std::move(buckets)) {
    for (const gradient_bucket& b : buckets_)
      if (in_windows) window_ = std::max(window_, b.end - b.begin);
  }

  int count() const { return int(buckets_.size()); }
  const gradient_bucket& operator[](int bucket) const { return buckets_[std::size_t(bucket)]; }
  /// The number of elements of all buckets.
  long size() const { return buckets_.empty() ? 0 : buckets_.front().end; }
  bool in_windows() const { return window_ > 0; }

  /// Elements of an array of sums. There is one for each subtree, one after the other.
  long stride() const { return in_windows() ? 2 * window_ : size(); }
  /// The index of an element of a bucket in the array of a subtree.
  long index(int subtree, int bucket, long element) const {
    return subtree * stride() + (in_windows() ? bucket % 2 * window_ + index_in_leaf(bucket, element) : element);
  }
  /// Its index in the gradients of a leaf.
  long index_in_leaf(int bucket, long element) const { return in_windows() ? element - (*this)[bucket].begin : element; }
};

/// The largest number of subtrees for the leaves of a member of a group, and for those of all others together. mine: -1 for the
/// member with the most. leaves_of(i, n): those of member i if there are n.
struct most_subtrees {
  long own = 0, others = 0;
  template <class LeavesOf>
  constexpr most_subtrees(int members, int mine, int leaves, LeavesOf&& leaves_of) {
    for (int n = leaves; n > 0; n = int(std::bit_floor(unsigned(n - 1)))) {
      long here = 0, all = 0;
      for (int i = 0; i < members; ++i) {
        const long count = subtrees(leaves_of(i, n)).count();
        if (mine < 0 || i == mine) here = std::max(here, count);
        all += count;
      }
      own = std::max(own, here), others = std::max(others, all - here);
    }
  }
};

/// A reduce-scatter and an all-gather in a group of processes. tree_reduction runs them.
template <class T, communicator C>
struct reduction_level {
  using memory = typename C::memory;

  reduction_group group{};
  std::vector<element_range> has{};  // by bucket: the elements that this process has sums of when the level begins
  std::vector<long> at{};            // by bucket: where in a row of `theirs`
  long row = 0;
  memory sums{};     // over each subtree of this process
  memory rounded{};  // the same as they are sent, if they are rounded
  memory theirs{};   // over each subtree of the others: what belongs to this process's slices
  arena<T> expanded{}, residue{};
  // Of all subtrees in the order of their leaves, while a slice is completed; subtree_sums[k][0] is its first element.
  std::vector<T*> subtree_sums{};
  std::vector<leaf_range> nodes{};

  /// The part of a bucket that member i of the group completes.
  element_range slice(int bucket, int i) const { return slice_of(has[std::size_t(bucket)], i, group.size()); }
  element_range own_slice(int bucket) const { return slice(bucket, group.own); }

  /// all: for each bucket, the elements whose sums this process has; updated to those that it has when the level ends.
  void divide(const bucket_layout& buckets, std::vector<element_range>& all) {
    has = all;
    at.clear();
    row = 0;
    long most = 0;
    for (int b = 0; b < buckets.count(); ++b) {
      all[std::size_t(b)] = own_slice(b);
      at.push_back(row);
      row += own_slice(b).size();
      most = std::max(most, own_slice(b).size());
    }
    if (!buckets.in_windows()) return;
    for (int b = 0; b < buckets.count(); ++b) at[std::size_t(b)] = b % 2 * most;
    row = 2 * most;
  }
  /// Allocates memory, after divide(). leaves: the largest number that is added up.
  void allocate(C& c, const bucket_layout& buckets, int leaves, bool rounds) {
    const most_subtrees most(group.size(), group.own, leaves, [&](int i, int n) { return group.leaves_of(i, n, c.size()); });
    const std::size_t sent = rounds ? sizeof(std::uint16_t) : sizeof(T);
    subtree_sums.resize(std::size_t(most.own + most.others));
    nodes.resize(std::size_t(most.own + most.others));
    sums = c.allocate(std::size_t(most.own * buckets.stride()) * sizeof(T));
    theirs = c.allocate(std::size_t(most.others * row) * sent);
    if (!rounds) return;
    rounded = c.allocate(std::size_t(most.own * buckets.stride()) * sent);
    expanded = arena<T>(std::size_t(most.others * row));
    residue = arena<T>(std::size_t(buckets.size()));
  }
};

}  // namespace strata::detail
