// Kernels that many operations need: one thread per element, and one block per sum.
#pragma once
#include <algorithm>
#include <strata/cuda/machine/blocks_of_multiprocessor.hpp>
#include <strata/cuda/machine/machine.hpp>

namespace strata::machine {

/// The sum over all threads of a block, a power of two, in a fixed tree. `part`: shared memory, an element per thread. Each
/// thread gets the sum; all have to call it. With Neighbours, a power of two, there are so many sums: thread t is a part of
/// number t % Neighbours, and gets that one.
template <int Neighbours = 1, int Threads, class V>
STRATA_DEVICE V sum_of_block(const lane& l, V (&part)[Threads], V mine) {
  part[l.thread()] = mine;
  for (int half = Threads / 2; half >= Neighbours; half /= 2) {
    l.barrier();
    if (l.thread() < half) part[l.thread()] += part[l.thread() + half];
  }
  l.barrier();
  const V sum = part[l.thread() % Neighbours];
  l.barrier();
  return sum;
}

template <class V>
struct prefix_sum {
  V up_to, all;
};
/// The sums over the threads of a block up to and with this thread, and over all threads. `part`: shared memory, two elements per
/// thread. All threads have to call it.
template <int Threads, class V>
STRATA_DEVICE prefix_sum<V> prefix_sum_of_block(const lane& l, V (&part)[2][Threads], V mine) {
  int now = 0;
  part[now][l.thread()] = mine;
  for (int distance = 1; distance < Threads; distance *= 2) {
    l.barrier();
    if (l.thread() >= distance) mine += part[now][l.thread() - distance];
    now = 1 - now;  // others still read the other half
    part[now][l.thread()] = mine;
  }
  l.barrier();
  const V all = part[now][Threads - 1];
  l.barrier();
  return {mine, all};
}

/// Threads for a block that computes a row.
constexpr int threads_for_row(long size) { return size <= 32 ? 32 : size <= 64 ? 64 : 128; }

namespace detail {
template <class Item>
struct one_thread_each {
  static constexpr int threads = 256;
  long count;
  Item item;

  STRATA_DEVICE void operator()(const lane& l) const {
    const long i = l.block() * threads + l.thread();
    if (i < count) item(i);
  }
};

template <class Sums>
constexpr int neighbours_of() {
  if constexpr (requires { Sums::neighbours; })
    return Sums::neighbours;
  else
    return 1;
}
/// A block adds up one sum or, so that its threads read side by side, some neighbouring ones.
template <class Sums>
struct one_block_each {
  static constexpr int at_once = neighbours_of<Sums>(), threads = Sums::threads * at_once;
  using value = typename Sums::value;
  struct shared {
    value part[threads];
  };
  Sums sums;
  long count;

  STRATA_DEVICE void operator()(const lane& l, shared& memory) const {
    const long sum = l.block() * at_once + l.thread() % at_once, terms = sum < count ? sums.terms(sum) : 0;
    value mine{};
    for (long i = l.thread() / at_once; i < terms; i += Sums::threads) mine += sums.term(sum, i);
    mine = sum_of_block<at_once>(l, memory.part, mine);
    if (l.thread() < at_once && sum < count) sums.store(sum, mine);
  }
};

/// Two kernels in one launch: the blocks of the first, then those of the second.
template <class First, class Second>
struct two_kernels {
  static constexpr int threads = First::threads;
  static_assert(threads == Second::threads, "the blocks of one launch have the same number of threads");
  static constexpr int blocks_of_multiprocessor = std::max(least_blocks<First>(), least_blocks<Second>());
  First first;
  Second second;
  long blocks_of_first;

  template <class... Shared>
  STRATA_DEVICE void operator()(const lane& l, Shared&... memory) const {
    if (l.block() < blocks_of_first)
      first(l, memory.first...);
    else
      second(l.from_block(blocks_of_first), memory.second...);
  }
};
template <class First, class Second>
struct two_sharing_kernels : two_kernels<First, Second> {
  union shared {
    typename First::shared first;
    typename Second::shared second;
  };
};
}  // namespace detail

/// A kernel and the number of its blocks.
template <class Code>
struct grid {
  Code code;
  long blocks;
};

template <class Code>
void launch(const queue& q, const grid<Code>& all) {
  machine::launch(q, all.blocks, all.code);
}
/// One launch for two kernels that do not depend on each other. Each of them may have no blocks. Both use shared memory, or none
/// of them.
template <class First, class Second>
void launch_together(const queue& q, const grid<First>& first, const grid<Second>& second) {
  const detail::two_kernels<First, Second> all{first.code, second.code, first.blocks};
  if constexpr (requires { typename First::shared; })
    machine::launch(q, first.blocks + second.blocks, detail::two_sharing_kernels<First, Second>{all});
  else
    machine::launch(q, first.blocks + second.blocks, all);
}

/// Calls item(i) for each i below `count`, in any order.
template <class Item>
auto indices(long count, const Item& item) {
  using code = detail::one_thread_each<Item>;
  return grid<code>{{count, item}, (count + code::threads - 1) / code::threads};
}
template <class Item>
void for_each_index(const queue& q, long count, const Item& item) {
  machine::launch(q, indices(count, item));
}

template <class T>
struct fill_with_zeros {
  T* to;
  constexpr void operator()(long i) const { to[i] = T{}; }
};

/// The number of neighbouring channels that a block adds up if pixels have `channels` channels.
constexpr int neighbours_among(int channels) { return channels >= 8 ? 8 : channels >= 4 ? 4 : channels >= 2 ? 2 : 1; }

/// `count` sums, each in an order that depends on its number of terms only. Members of Sums:
///   `value`          the type of a sum; value{} is zero
///   `threads`        of a block, a power of two
///   `terms(sum)`, `term(sum, i)`, `store(sum, value)`
///   and perhaps `neighbours`, up to 8: in memory, the terms i of so many neighbouring sums lie side by side
template <class Sums>
void for_each_sum(const queue& q, long count, const Sums& sums) {
  using code = detail::one_block_each<Sums>;
  machine::launch(q, (count + code::at_once - 1) / code::at_once, code{sums, count});
}

/// Two sums of the same loop.
template <class T>
struct sum_pair {
  T first, second;
  STRATA_DEVICE constexpr sum_pair& operator+=(const sum_pair& other) {
    first += other.first, second += other.second;
    return *this;
  }
};

}  // namespace strata::machine
