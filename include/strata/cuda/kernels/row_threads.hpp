// The threads of a row: one, or those of a block together. Functions of rows are written once for both.
#pragma once
#include <cstddef>
#include <span>
#include <strata/cuda/machine/loops.hpp>
#include <type_traits>

namespace strata::machine {

/// One thread, which computes a row alone.
struct row_by_thread {
  /// True for the only thread of the row, or for the one that acts for all.
  constexpr bool is_first() const { return true; }
  /// Waits until all threads of the row have called it; what they have stored can be read then.
  STRATA_DEVICE void wait_for_all() const {}
  /// Calls f(i) for each i below `count`.
  template <class F>
  STRATA_DEVICE void for_each(int count, const F& f) const {
    for (int i = 0; i < count; ++i) f(i);
  }
  /// The sum of f(i) over each i below `count`.
  template <class V, class F>
  STRATA_DEVICE V sum(int count, const F& f) const {
    V all{};
    for (int i = 0; i < count; ++i) all += f(i);
    return all;
  }
  /// The largest number of a row. Comparisons with nan are false.
  template <class T>
  STRATA_DEVICE T largest(std::span<const T> row) const {
    T all = row[0];
    for (const T x : row) all = x > all ? x : all;
    return all;
  }
  /// The first i below `count` for which f(i) is true; `count` if there is none.
  template <class F>
  STRATA_DEVICE int first_where(int count, const F& f) const {
    int i = 0;
    while (i < count && !f(i)) ++i;
    return i;
  }
};

/// The threads of a block. All of them call each member, with the same arguments; each gets the result.
template <class T, int Threads>
class row_by_block {
 public:
  union memory {
    T numbers[Threads];
    long counts[Threads];
  };

  STRATA_DEVICE row_by_block(const lane& l, memory& shared) : lane_(l), shared_(shared) {}
  STRATA_DEVICE bool is_first() const { return lane_.thread() == 0; }
  STRATA_DEVICE void wait_for_all() const { lane_.barrier(); }
  template <class F>
  STRATA_DEVICE void for_each(int count, const F& f) const {
    for (int i = lane_.thread(); i < count; i += Threads) f(i);
  }
  template <class V, class F>
  STRATA_DEVICE V sum(int count, const F& f) const {
    V mine{};
    for_each(count, [&](int i) { mine += f(i); });
    if constexpr (std::is_same_v<V, T>)
      return sum_of_block(lane_, shared_.numbers, mine);
    else
      return sum_of_block(lane_, shared_.counts, mine);
  }
  STRATA_DEVICE T largest(std::span<const T> row) const {
    T mine = row[0];
    for_each(int(row.size()), [&](int i) { mine = row[std::size_t(i)] > mine ? row[std::size_t(i)] : mine; });
    return chosen(shared_.numbers, mine, [](T a, T b) { return a > b ? a : b; });
  }
  template <class F>
  STRATA_DEVICE int first_where(int count, const F& f) const {
    int mine = lane_.thread();
    while (mine < count && !f(mine)) mine += Threads;
    return int(chosen(shared_.counts, long{mine < count ? mine : count}, [](long a, long b) { return a < b ? a : b; }));
  }

 private:
  const lane& lane_;
  memory& shared_;

  /// Reduces the values of all threads with `choose`, which returns one of two values.
  template <class V, class Choose>
  STRATA_DEVICE V chosen(V (&of_threads)[Threads], V mine, const Choose& choose) const {
    of_threads[lane_.thread()] = mine;
    for (int half = Threads / 2; half > 0; half /= 2) {
      lane_.barrier();
      if (lane_.thread() < half)
        of_threads[lane_.thread()] = choose(of_threads[lane_.thread() + half], of_threads[lane_.thread()]);
    }
    lane_.barrier();
    const V all = of_threads[0];
    lane_.barrier();
    return all;
  }
};

/// True if a row of N elements is long: a single thread would read it element by element, far from the reads of other threads.
constexpr bool is_long_row(int N) { return N > 64; }

namespace detail {
template <class Item>
struct rows_by_threads {
  Item item;
  STRATA_DEVICE void operator()(long n) const { item(row_by_thread{}, n); }
};
template <class T, class Item>
struct rows_by_blocks {
  static constexpr int threads = 128;
  using row = row_by_block<T, threads>;
  using shared = typename row::memory;
  Item item;
  STRATA_DEVICE void operator()(const lane& l, shared& memory) const { item(row(l, memory), l.block()); }
};
}  // namespace detail

/// Calls item(row, n) for each row n < count of N elements, with a thread for each row or, if rows are long, a block.
template <class T, int N, class Item>
void for_each_row(const queue& q, long count, const Item& item) {
  if constexpr (is_long_row(N))
    machine::launch(q, count, detail::rows_by_blocks<T, Item>{item});
  else
    for_each_index(q, count, detail::rows_by_threads<Item>{item});
}

}  // namespace strata::machine
