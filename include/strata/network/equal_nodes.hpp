// The parameters of a graph in the arena of another graph that has its nodes.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <strata/network/graph.hpp>
#include <strata/network/layout.hpp>

namespace strata {

namespace core {
// The words of a diagnostic. None is ever defined.
template <class Node, class Why>
struct no_node;
}  // namespace core

namespace detail {

/// The number among the nodes of From of each node of a graph; -1: From lacks it.
template <class From, class... N>
constexpr std::array<int, sizeof...(N)> numbers_of_nodes_in(type_list<N...>) {
  return {index_in<N>(typename From::nodes{})...};
}

/// The index of the first node of a graph that From lacks; -1: it has all of them.
template <class From, class To>
inline constexpr int first_other_node = [] {
  constexpr auto numbers = numbers_of_nodes_in<From>(typename To::nodes{});
  for (std::size_t k = 0; k < numbers.size(); ++k)
    if (numbers[k] < 0) return int(k);
  return -1;
}();

/// Calls f(slot of From, slot of To) for each parameter of To, a graph whose nodes From has. A node of From may use the
/// parameters of another one where that of To has its own, because shared layers belong to their first use.
template <class From, class To>
constexpr void for_parameters_of_equal_nodes(const auto& f) {
  constexpr auto begins = begins_of_nodes(typename To::nodes{});
  constexpr auto begins_of_from = begins_of_nodes(typename From::nodes{});
  constexpr auto number = numbers_of_nodes_in<From>(typename To::nodes{});
  constexpr const auto& to = layout_of<typename To::items>;
  constexpr const auto& from = layout_of<typename From::items>;
  constexpr const auto& tape = tape_of<typename From::items>;
  for (int s = 0; s < to.count; ++s) {
    const parameter_slot& slot = to.slots[s];
    std::size_t k = begins.size() - 1;
    while (begins[k] > slot.node) --k;
    int node = begins_of_from[std::size_t(number[k])] + slot.node - begins[k];
    if (const int owner = tape.nodes[node].owner; owner >= 0) node = owner;
    for (int other = 0; other < from.count; ++other)
      if (from.slots[other].node == node && from.slots[other].index == slot.index) f(from.slots[other], slot);
  }
}

/// Copies the weights of the nodes of To from the arena of From, a graph that has them.
template <class From, class To, class T>
void copy_weights_of_equal_nodes(std::span<const T> from, std::span<T> to) {
  for_parameters_of_equal_nodes<From, To>([&](const parameter_slot& source, const parameter_slot& place) {
    std::copy_n(from.data() + source.offset, source.what.extents.size(), to.data() + place.offset);
  });
}

}  // namespace detail

}  // namespace strata
