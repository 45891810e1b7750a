// The arithmetic work of a network, from its shapes.
#pragma once
#include <strata/network/layout.hpp>

namespace strata {

namespace detail {
/// A kernel (..., F) is applied once at each position of an output (..., F). Parameters of rank 1, such as biases, are not
/// counted, nor tables of rows, which multiply nothing.
template <int N, int Count>
constexpr long count_multiply_adds(const tape<N>& t, const parameter_layout<Count>& l) {
  long sum = 0;
  for (int s = 0; s < Count; ++s) {
    const tape_node& n = t.nodes[l.slots[s].node];
    if (n.operation->looks_up) continue;
    const shape& out = n.out;
    if (l.slots[s].what.extents.rank() > 1) sum += long(l.slots[s].what.extents.size()) * (out.size() / out.last());
  }
  return sum;
}
}  // namespace detail

/// Multiply-adds of dense layers and convolutions for the forward pass of one sample. Training takes about three times as many.
template <network Network>
inline constexpr long multiply_adds_of =
    detail::count_multiply_adds(tape_of<typename Network::items>, layout_of<typename Network::items>);

}  // namespace strata
