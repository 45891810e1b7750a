// The arithmetic work of a network, from its shapes.
#pragma once
#include <algorithm>
#include <strata/network/layout.hpp>

namespace strata {

namespace detail {
/// A kernel is applied once at each position of the output, or, if it enlarges an image, of the input. Parameters of rank 1, such
/// as biases, are not counted, nor embedding tables, which are not multiplied.
template <int N, int Count>
constexpr long count_multiply_adds(const tape<N>& t, const parameter_layout<Count>& l) {
  long sum = 0;
  for (int s = 0; s < Count; ++s) {
    const tape_node& n = t.nodes[l.slots[s].node];
    if (n.operation->traits.looks_up) continue;
    const shape in = t.in(l.slots[s].node), &out = n.out;
    const int positions = std::min(in.size() / in.last(), out.size() / out.last());
    if (l.slots[s].what.extents.rank() > 1) sum += long(l.slots[s].what.extents.size()) * positions;
  }
  return sum;
}
}  // namespace detail

namespace core {
/// Multiply-adds of dense layers and convolutions for the forward pass of one sample. Training takes about three times as many.
template <network Network>
inline constexpr long multiply_adds_of =
    detail::count_multiply_adds(tape_of<typename Network::items>, layout_of<typename Network::items>);

/// Whether a sample uses each weight many times, as in convolutions, rather than once, as in dense layers.
template <network Network>
inline constexpr bool reuses_weights = multiply_adds_of<Network> > 4 * layout_of<typename Network::items>.trainable;
}  // namespace core

}  // namespace strata
