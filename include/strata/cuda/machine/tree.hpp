// Sums over leaves on a device.
#pragma once
#include <bit>
#include <strata/network/leaves.hpp>

namespace strata::machine {

/// The sum of value(l) over the leaves l below `count`, in the binary tree over leaves (sum_in_tree), without recursion. Eight
/// leaves are read before the first of them is added, so that a thread does not wait for each.
template <class T, class Value>
constexpr T sum_over_leaves(int count, const Value& value) {
  constexpr int at_once = 8;
  T open[std::bit_width(unsigned(max_leaves)) + 1] = {};
  int n = 0, l = 0;
  // number: of the sums of this size, counted from 1
  const auto add = [&](T sum, int number) {
    open[n++] = sum;
    for (; number % 2 == 0; number /= 2, --n) open[n - 2] += open[n - 1];
  };
  for (; l + at_once <= count; l += at_once) {
    T sums[at_once];
    for (int i = 0; i < at_once; ++i) sums[i] = value(l + i);
    for (int step = 1; step < at_once; step *= 2)
      for (int i = 0; i < at_once; i += 2 * step) sums[i] += sums[i + step];
    add(sums[0], l / at_once + 1);
  }
  for (; l < count; ++l) add(value(l), l + 1);
  for (; n > 1; --n) open[n - 2] += open[n - 1];
  return open[0];
}

}  // namespace strata::machine
