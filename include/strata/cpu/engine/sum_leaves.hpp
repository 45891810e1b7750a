// Adds up the gradients of leaves in a fixed binary tree, so that the bits depend neither on slices nor on the width of vectors.
#pragma once
#include <algorithm>
#include <bit>
#include <strata/cpu/simd/simd.hpp>

namespace strata {

namespace core {
/// Leaves that are added up in one pass.
inline constexpr int leaves_in_a_pass = 16;
}  // namespace core

namespace detail {

/// ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)) ... of element i.
template <int Leaves, class T>
STRATA_INLINE inline simd::vec<T> tree_sum(const T* const* leaves, long i) {
  if constexpr (Leaves == 1)
    return simd::load(leaves[0] + i);
  else
    return tree_sum<Leaves / 2>(leaves, i) + tree_sum<Leaves / 2>(leaves + Leaves / 2, i);
}

/// tree_sum for any number of leaves up to leaves_in_a_pass. A sum without a partner joins in a later round.
template <class T>
simd::vec<T> tree_sum_of_any(const T* const* leaves, int count, long i) {
  simd::vec<T> sum[leaves_in_a_pass] = {};
  for (int l = 0; l < count; ++l) sum[l] = simd::load(leaves[l] + i);
  for (int distance = 1; distance < count; distance *= 2)
    for (int l = 0; l + distance < count; l += 2 * distance) sum[l] += sum[l + distance];
  return sum[0];
}

/// Elements that stay in the first-level cache between adding up leaves and the rule.
inline constexpr long update_block = 512;

template <class T>
void add_many_leaves(T* to, const T* const* leaves, int count, long begin, long end);

/// to[0 ...] = elements [begin, end) of the sum over leaves.
template <class T>
void add_leaves(T* to, const T* const* leaves, int count, long begin, long end) {
  const auto store_all = [&](auto sum) STRATA_INLINE {
    for (long i = begin; i < end; i += simd::lanes<T>) simd::store(to + (i - begin), sum(i));
  };
  switch (count) {
    case 1:
      return store_all([=](long i) STRATA_INLINE { return tree_sum<1>(leaves, i); });
    case 2:
      return store_all([=](long i) STRATA_INLINE { return tree_sum<2>(leaves, i); });
    case 4:
      return store_all([=](long i) STRATA_INLINE { return tree_sum<4>(leaves, i); });
    case 8:
      return store_all([=](long i) STRATA_INLINE { return tree_sum<8>(leaves, i); });
    case 16:
      return store_all([=](long i) STRATA_INLINE { return tree_sum<16>(leaves, i); });
    default:
      if (count <= leaves_in_a_pass) return store_all([=](long i) { return tree_sum_of_any(leaves, count, i); });
  }
  for (long at = begin; at < end; at += update_block)
    add_many_leaves(to + (at - begin), leaves, count, at, std::min(at + update_block, end));
}

/// add_leaves for one block and many leaves: the two subtrees below the root, one after the other. `to` may be one of the leaves,
/// so the first subtree is added last.
template <class T>
void add_many_leaves(T* to, const T* const* leaves, int count, long begin, long end) {
  if (count <= leaves_in_a_pass) return add_leaves(to, leaves, count, begin, end);
  const int first = int(std::bit_floor(unsigned(count - 1)));
  alignas(64) T rest[update_block];
  add_many_leaves(rest, leaves + first, count - first, begin, end);
  add_many_leaves(to, leaves, first, begin, end);
  for (long i = 0; i < end - begin; i += simd::lanes<T>) simd::store(to + i, simd::load(to + i) + simd::load(rest + i));
}

/// Calls f(sums, begin, end) for blocks of the slice. sums[0] belongs to element `begin`.
template <class T, class F>
void for_blocks(const T* const* leaves, int count, long begin, long end, F&& f) {
  alignas(64) T sums[update_block];
  for (long at = begin; at < end; at += update_block) {
    const long stop = std::min(at + update_block, end);
    if (count == 1) {
      f(leaves[0] + at, at, stop);
    } else {
      add_leaves(sums, leaves, count, at, stop);
      f(sums, at, stop);
    }
  }
}

}  // namespace detail

namespace core {
/// to[i] = the sum over leaves of element i, in one process, before it is reduced with others. `to` may be one of the leaves.
template <class T>
void sum_leaves(T* to, const T* const* leaves, int count, long begin, long end) {
  detail::add_leaves(to + begin, leaves, count, begin, end);
}
}  // namespace core

}  // namespace strata
