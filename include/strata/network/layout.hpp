// The layout: the place of each parameter in the arena. It depends on the network only, so that all backends, strategies and
// checkpoints share it. Trained parameters come first, then state. Each begins at a multiple of 64 bytes.
#pragma once
#include <concepts>
#include <strata/network/sequential.hpp>
#include <utility>

namespace strata {

namespace core {
/// Parameters begin at multiples of this number of elements: 64 bytes of floats.
inline constexpr int parameter_alignment = 16;
}  // namespace core

namespace detail {
/// Rounds up to the next place at which a parameter may begin.
template <std::integral Size>
constexpr Size aligned_elements(Size elements) {
  return (elements + parameter_alignment - 1) / parameter_alignment * parameter_alignment;
}
}  // namespace detail

namespace core {
/// A parameter and its place in the arena, in elements.
struct parameter_slot {
  parameter what;
  long offset = 0;
  int node = 0, index = 0;  // parameter `index` of that node
};

template <int Count>
struct parameter_layout {
  static constexpr int count = Count;
  parameter_slot slots[Count + 1];
  /// Elements of the trained parameters, which come first in the arena, and of all parameters; both include padding.
  long trainable = 0, size = 0;
  /// The same without padding.
  long trainable_count = 0, state_count = 0;

  constexpr bool has_regularizers() const {
    for (int s = 0; s < Count; ++s)
      if (slots[s].what.trainable && !slots[s].what.regularizer.empty()) return true;
    return false;
  }
};
}  // namespace core

namespace detail {
/// Writes the parameters of one node to `out`, with the initializers and regularizers of its layer's options; returns their
/// number. Those of a frozen layer are not trained.
constexpr int parameters_of_node(const tape_node& n, shape in, parameter* out) {
  const int count = n.operation->parameters(in, out);
  for (int k = 0; k < count; ++k) {
    n.layer->adjust(out[k]);
    if (n.frozen) out[k].frozen = std::exchange(out[k].trainable, false);
  }
  return count;
}

template <int N>
constexpr int count_parameters(const tape<N>& t) {
  parameter owned[max_parameters] = {};
  int n = 0;
  if (t.well_shaped())
    for (int i = 1; i < N; ++i)
      if (t.nodes[i].owner < 0) n += t.nodes[i].operation->parameters(t.in(i), owned);
  return n;
}

template <int Count, int N>
constexpr parameter_layout<Count> lay_out_parameters(const tape<N>& t) {
  parameter_layout<Count> l{};
  if (!t.well_shaped()) return l;
  parameter owned[max_parameters] = {};
  const auto place = [&](bool trainable) {
    for (int i = 1, slot = 0; i < N; ++i) {
      const int n = t.nodes[i].owner < 0 ? parameters_of_node(t.nodes[i], t.in(i), owned) : 0;
      for (int k = 0; k < n; ++k, ++slot) {
        if (owned[k].trainable != trainable) continue;
        l.slots[slot] = {owned[k], l.size, i, k};
        const int size = owned[k].extents.size();
        (trainable ? l.trainable_count : l.state_count) += size;
        l.size += detail::aligned_elements(size);
      }
    }
  };
  place(true);
  l.trainable = l.size;
  place(false);
  return l;
}
}  // namespace detail

namespace core {
/// The slots are in the order of the tape, not of their offsets. A node that uses the parameters of another one has none.
template <class Items>
inline constexpr auto layout_of = detail::lay_out_parameters<detail::count_parameters(tape_of<Items>)>(tape_of<Items>);
}  // namespace core

}  // namespace strata
