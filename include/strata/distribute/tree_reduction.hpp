// The sum of the leaves of all processes, bit for bit as if one process had them all.
#pragma once
#include <algorithm>
#include <array>
#include <strata/concepts/communicator.hpp>
#include <strata/cpu/update.hpp>
#include <strata/distribute/leaf_share.hpp>
#include <strata/distribute/team.hpp>
#include <utility>

namespace strata {

/// Each process adds up the leaves of its subtrees, sends every other process the slice that this one shall finish, finishes its
/// own slice, and sends it to all: 2 (P - 1) / P of the numbers leave each process, in two rounds (a reduce-scatter and an
/// all-gather, cf. Thakur et al., "Optimization of collective communication operations in MPICH", 2005), as long as the shares
/// are whole subtrees. Memory is made by prepare; a sum allocates nothing.
template <class T, communicator C>
class tree_reduction {
  using memory = typename C::memory;

  long size_ = 0;
  int leaves_ = 0;
  memory mine_, theirs_, sum_;

 public:
  /// For sums of up to `size` numbers of up to `leaves` leaves.
  void prepare(C& c, long size, int leaves) {
    if (size <= size_ && leaves <= leaves_) return;
    size_ = std::max(size, size_), leaves_ = std::max(leaves, leaves_);
    long own = 0, others = 0;
    for (int n = 1; n <= leaves_; ++n) {
      long received = 0;
      for (int r = 0; r < c.size(); ++r) {
        const long count = subtrees(share_of(n, r, c.size())).count();
        if (r == c.rank())
          own = std::max(own, count);
        else
          received += count;
      }
      others = std::max(others, received);
    }
    const long slice = (size_ / norm_piece / c.size() + 2) * norm_piece;
    mine_ = c.allocate(bytes(own * size_));
    theirs_ = c.allocate(bytes(others * slice));
    sum_ = c.allocate(bytes(size_));
  }

  /// `leaves[l]` are the numbers of leaf l of `count`; only those of this process's share are looked at. The sum lives until the
  /// next one.
  T* operator()(C& c, thread_team& team, const T* const* leaves, int count, long size) {
    const leaf_range share = share_of(count, c.rank(), c.size());
    const subtrees parts(share);
    T *const mine = numbers(mine_), *const theirs = numbers(theirs_), *const sum = numbers(sum_);
    in_slices(team, 0, size, [&](long begin, long end) {
      for (int k = 0; k < parts.count(); ++k)
        sum_leaves(mine + k * size, leaves + parts[k].begin, parts[k].size(), begin, end);
    });

    const auto slice_of = [&](int r) { return std::pair(slice_begin(size, r, c.size()), slice_begin(size, r + 1, c.size())); };
    const long begin = slice_of(c.rank()).first, end = slice_of(c.rank()).second;
    std::array<T*, max_leaves> slices{};         // of all subtrees, in the order of their leaves; slices[k][0] is element `begin`
    std::array<leaf_range, max_leaves> nodes{};
    int n = 0;
    long received = 0;
    for (int r = 0; r < c.size(); ++r) {
      const subtrees theirs_of(share_of(count, r, c.size()));
      for (int k = 0; k < theirs_of.count(); ++k, ++n) {
        nodes[std::size_t(n)] = theirs_of[k];
        if (r == c.rank()) {
          slices[std::size_t(n)] = mine + k * size + begin;
          continue;
        }
        slices[std::size_t(n)] = theirs + received;
        if (begin < end) c.receive(theirs_, bytes(received), bytes(end - begin), r);
        received += end - begin;
      }
      if (r == c.rank()) continue;
      const auto [first, last] = slice_of(r);
      for (int k = 0; k < parts.count() && first < last; ++k) c.send(mine_, bytes(k * size + first), bytes(last - first), r);
    }
    c.wait("gradients");

    in_slices(team, 0, end - begin, [&](long first, long last) {
      add_in_tree([&](int k) { return nodes[std::size_t(k)]; }, n, [&](int a, int b) {
        const T* const two[2] = {slices[std::size_t(a)], slices[std::size_t(b)]};
        sum_leaves(slices[std::size_t(a)], two, 2, first, last);
      });
      std::copy(slices[0] + first, slices[0] + last, sum + begin + first);
    });
    for (int r = 0; r < c.size(); ++r) {
      if (r == c.rank()) continue;
      const auto [first, last] = slice_of(r);
      if (first < last) c.receive(sum_, bytes(first), bytes(last - first), r);
      if (begin < end) c.send(sum_, bytes(begin), bytes(end - begin), r);
    }
    c.wait("reduced gradients");
    return sum;
  }

 private:
  static constexpr std::size_t bytes(long numbers) { return std::size_t(numbers) * sizeof(T); }
  static T* numbers(memory& m) { return reinterpret_cast<T*>(m.data()); }
  template <class F>
  static void in_slices(thread_team& team, long begin, long end, F&& f) {
    const int slices = team.size();
    team.for_tasks(slices, [&](int i, int) {
      const long first = begin + slice_begin(end - begin, i, slices), last = begin + slice_begin(end - begin, i + 1, slices);
      if (first < last) f(first, last);
    });
  }
};

/// Few numbers per leaf, which everybody wants to have of all leaves: tallies, statistics. `begin`, then the communicator's wait,
/// then `finish`; `numbers(l)` are the `width` numbers of leaf l of `count`.
template <communicator C>
class leaf_exchange {
  typename C::memory all_;
  std::size_t size_ = 0;

 public:
  /// For up to `width` numbers of up to `leaves` leaves.
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
  /// Writes those of the others.
  template <class Numbers>
  void finish(const C& c, int count, std::size_t width, Numbers&& numbers) {
    const leaf_range share = share_of(count, c.rank(), c.size());
    for (int l = 0; l < count; ++l)
      if (l < share.begin || l >= share.end) std::copy_n(numbers_of(l, width), width, numbers(l));
  }

 private:
  double* numbers_of(int leaf, std::size_t width) { return reinterpret_cast<double*>(all_.data()) + std::size_t(leaf) * width; }
  static constexpr std::size_t bytes(int leaves, std::size_t width) { return std::size_t(leaves) * width * sizeof(double); }
};

}  // namespace strata
