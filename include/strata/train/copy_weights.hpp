// Weights of layers that two networks have in common.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <strata/network/layout.hpp>
#include <type_traits>

namespace strata {

namespace detail {
/// Nodes [begin, end) of the tape.
struct node_range {
  int begin = 0, end = 0;
  int found = 0;  // occurrences of the item in the network

  constexpr bool has(int node) const { return begin <= node && node < end; }
};

template <class Item, class... Items>
constexpr node_range nodes_of_item(branch<Items...>) {
  constexpr int lengths[] = {length(typename structure<Items>::types{})...};
  constexpr bool is_wanted[] = {(std::is_same_v<Item, Items> || std::is_same_v<frozen<Item>, Items>)...};
  node_range nodes;
  for (int i = 0, at = 0; i < int(sizeof...(Items)); at += lengths[i++])
    if (is_wanted[i]) nodes = {at, at + lengths[i], nodes.found + 1};
  return nodes;
}

/// The first parameter from slot s on that belongs to the nodes, or the number of slots.
template <int Count>
constexpr int next_slot(const parameter_layout<Count>& layout, const node_range& nodes, int s) {
  while (s < Count && !nodes.has(layout.slots[s].node)) ++s;
  return s;
}

/// Calls f(slot of `from`, slot of `to`) for each parameter of the nodes; returns whether they have equal shapes.
template <int A, int B>
constexpr bool for_equal_parameters(const parameter_layout<A>& from, const node_range& nodes_of_from,
                                    const parameter_layout<B>& to, const node_range& nodes_of_to, auto&& f) {
  int a = next_slot(from, nodes_of_from, 0), b = next_slot(to, nodes_of_to, 0);
  for (; a < A && b < B; a = next_slot(from, nodes_of_from, a + 1), b = next_slot(to, nodes_of_to, b + 1)) {
    if (from.slots[a].what.extents != to.slots[b].what.extents) return false;
    f(from.slots[a], to.slots[b]);
  }
  return a == A && b == B;
}
}  // namespace detail

/// Copies weights and state of `Layers`, an item of the networks of both trainers: for transfer learning, and for networks that
/// are trained in turn, such as those of a GAN. In either network the item may be `frozen<Layers>`. The optimizers are left as
/// they are.
///   using features = sequential<conv2d<16, 3, relu>, max_pool2d<2>, flatten>;
///   trainer animals{sequential<input<32, 32, 3>, features, dense<10, softmax>>{}, ...};
///   trainer flowers{sequential<input<32, 32, 3>, features, dense<5, softmax>>{}, ...};
///   copy_weights<features>(animals, flowers);
/// A collective call of all processes that train together.
template <class Layers, class From, class To>
void copy_weights(const From& from, To& to) {
  using a = typename From::network::items;
  using b = typename To::network::items;
  constexpr detail::node_range nodes_of_a = detail::nodes_of_item<Layers>(a{}), nodes_of_b = detail::nodes_of_item<Layers>(b{});
  constexpr bool stands_once = nodes_of_a.found == 1 && nodes_of_b.found == 1;
  static_assert(stands_once, "copy_weights<Layers>: Layers must be exactly one item of each network");
  static_assert(std::is_same_v<typename From::value_type, typename To::value_type>, "copy_weights: the precisions differ");
  if constexpr (stands_once) {
    constexpr bool equal =
        detail::for_equal_parameters(core::layout_of<a>, nodes_of_a, core::layout_of<b>, nodes_of_b, [](auto&, auto&) {});
    static_assert(equal,
                  "copy_weights: the layers receive another shape in the second network, so their weights differ in shape");
    if constexpr (requires { to.executor(); }) {  // a refused trainer has no executor, and reports its own error
      detail::for_equal_parameters(core::layout_of<a>, nodes_of_a, core::layout_of<b>, nodes_of_b,
                                   [values = from.parameters(), arena = to.executor().parameters()](auto& source, auto& place) {
                                     const auto size = std::size_t(source.what.extents.size());
                                     std::ranges::copy(values.subspan(std::size_t(source.offset), size),
                                                       arena.subspan(std::size_t(place.offset), size).begin());
                                   });
      to.executor().parameters_changed();
    }
  }
}

}  // namespace strata
