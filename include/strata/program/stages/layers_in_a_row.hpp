// The layers of a network in a row, where stages can be cut, and what they cost.
#pragma once
#include <strata/network/layout.hpp>
#include <strata/network/network_of_rank.hpp>
#include <strata/program/stages/split_backend.hpp>

namespace strata {

namespace detail {
/// The layers of a program in a row: first nodes and costs. What stands in a sequential, a branch, `frozen` or `on_device` counts
/// by itself; a join and its branches are one layer.
template <int Max>
struct layer_row {
  int count = 0;
  int first[Max + 1] = {};      // node of each layer, then the end
  double cost[Max + 1] = {};    // of a sample, forward and backward
  double sent[Max + 1] = {};    // if another stage has the next layer
  bool computes[Max + 1] = {};  // false: all of it stays with its input
};

template <class Item>
struct lengths_in_row {
  static constexpr void each(auto&& f) { f(length(typename structure<Item>::types{})); }
};
template <class... Items>
struct lengths_of_items {
  static constexpr void each(auto&& f) { (lengths_in_row<Items>::each(f), ...); }
};
template <class... Items>
struct lengths_in_row<branch<Items...>> : lengths_of_items<Items...> {};
template <class... Items>
struct lengths_in_row<frozen<Items...>> : lengths_of_items<Items...> {};
template <int Index, class... Items>
struct lengths_in_row<on_device<Index, Items...>> : lengths_of_items<Items...> {};
template <class... Items>
struct lengths_in_row<sequential<Items...>> : lengths_of_items<Items...> {};
template <int... Extents, class... Items>
struct lengths_in_row<sequential<input<Extents...>, Items...>> : lengths_of_items<Items...> {};
template <class Items, class Map, int Ranks>
struct lengths_in_row<divided<Items, Map, Ranks>> : lengths_in_row<Items> {};

/// What a stage takes for a sample, in floating-point operations: a core reads or writes a byte in the time of `per_byte` of
/// them. Activations are written and read forward and backward; weights are read three times for a micro-batch of about 32
/// samples.
inline constexpr double per_byte = 4, samples_of_micro_batch = 32, bytes_of_number = 4;
/// How often they are written or read.
inline constexpr double passes_of_activations = 4, passes_of_weights = 3, passes_of_message = 2;

/// The last item, the loss, belongs to the layer before it.
template <class Items>
constexpr auto layers_in_a_row() {
  constexpr const auto& t = tape_of<Items>;
  constexpr const auto& l = layout_of<Items>;
  layer_row<t.size> row;
  if (!t.well_shaped()) return row;
  int node = 0;
  lengths_in_row<Items>::each([&](int length) {
    if (length > 0 && !t.nodes[node].is_input() && !t.nodes[node].operation->is_loss) row.first[row.count++] = node;
    node += length;
  });
  row.first[row.count] = t.size;
  for (int k = 0; k < row.count; ++k)
    for (int i = row.first[k]; i < row.first[k + 1]; ++i) {
      const tape_node& n = t.nodes[i];
      if (n.operation->is_loss) continue;
      if (!stays_with_input(t, i)) row.computes[k] = true;
      if (n.operation->multiply_adds) row.cost[k] += 6.0 * double(n.operation->multiply_adds(t.in(i)));
      if (n.operation->traits.is_view) continue;
      row.cost[k] += per_byte * bytes_of_number * passes_of_activations * n.out.size();
      row.sent[k] = per_byte * bytes_of_number * passes_of_message * n.out.size();
    }
  for (int s = 0; s < l.count; ++s)
    for (int k = 0; k < row.count; ++k)
      if (row.first[k] <= l.slots[s].node && row.first[k + 1] > l.slots[s].node)
        row.cost[k] += per_byte * bytes_of_number * passes_of_weights / samples_of_micro_batch * l.slots[s].what.extents.size();
  return row;
}
template <class Items>
inline constexpr auto layers_of = layers_in_a_row<Items>();
}  // namespace detail

}  // namespace strata
