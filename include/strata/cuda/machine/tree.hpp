// Sums over leaves on a device.
#pragma once
#include <bit>
#include <strata/network/leaves.hpp>

namespace strata::machine {

/// The sum of value(l) over the leaves l below `count`, in the binary tree over leaves (sum_in_tree), without recursion.
template <class T, class Value>
constexpr T sum_over_leaves(int count, const Value& value) {
  T open[std::bit_width(unsigned(max_leaves)) + 1] = {};
  int n = 0;
  for (int l = 0; l < count; ++l) {
    open[n++] = value(l);
    for (int at = l + 1; at % 2 == 0; at /= 2, --n) open[n - 2] += open[n - 1];
  }
  for (; n > 1; --n) open[n - 2] += open[n - 1];
  return open[0];
}

}  // namespace strata::machine
