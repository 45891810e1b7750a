// summary_of: the table of layers, output shapes and parameters that Keras prints.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <span>
#include <strata/base/linkage.hpp>
#include <strata/base/node_name.hpp>
#include <strata/base/shape_text.hpp>
#include <strata/base/text.hpp>
#include <strata/network/graph.hpp>
#include <strata/network/layer_names.hpp>
#include <strata/network/layout.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

struct summary_options {
  /// Bytes of one element.
  int element_size = 4;
  /// Elements of the optimizer's state. Below 0: the line about the optimizer is left out.
  long optimizer_parameters = -1;
  /// Elements that are not trained although the type of their layer allows it.
  long frozen_parameters = 0;
  /// Width of the table. 0: Keras' width, 88 characters (108 with branches), or less if standard output is a narrower terminal.
  int line_length = 0;
  /// The name of the model. Empty: Keras' automatic name.
  std::string name = {};
};

namespace detail {

/// 18496 -> 18,496
[[gnu::cold]] std::string grouped(long n);

[[gnu::cold]] std::string readable_memory(double bytes);

int line_length_of_terminal(int wanted);

/// A node of a graph, and where it begins on the tape.
struct named_node {
  int begin;
  std::string_view name;
};
/// The node of a graph to which node i of the tape belongs. named: in the order of the tape, not empty.
constexpr const named_node& named_node_of(std::span<const named_node> named, int i) {
  return *std::prev(std::ranges::upper_bound(named, i, {}, &named_node::begin));
}
template <class Network>
inline constexpr std::array<named_node, 0> named_nodes_of{};
template <class Network>
  requires is_graph<Network>
inline constexpr auto named_nodes_of<Network> = []<class... N>(type_list<N...> nodes) {
  std::array<named_node, sizeof...(N)> all{named_node{0, node_name<N>}...};
  const auto begins = begins_of_nodes(nodes);
  for (std::size_t k = 0; k < all.size(); ++k) all[k].begin = begins[k];
  return all;
}(typename Network::nodes{});

[[gnu::cold]] std::string summary_text(std::span<const tape_node> nodes, std::span<const parameter_slot> slots,
                                       std::span<const named_node> named, long trainable, long state,
                                       const summary_options& options);

}  // namespace detail

/// The table that Keras' model.summary() prints, in UTF-8: one row per layer. A network with branches has a column with the
/// inputs of each layer. An input of a graph has the name of its node; a layer has it before its own: seen/conv2d.
/// https://keras.io/api/models/model#summary-method
template <core::network Network>
std::string summary_of(const summary_options& options = {}) {
  constexpr const auto& layout = core::layout_of<typename Network::items>;
  return detail::summary_text(detail::nodes_of<Network>(), detail::slots_of<Network>(), detail::named_nodes_of<Network>,
                              layout.trainable_count, layout.state_count, options);
}

}  // namespace strata

#if STRATA_DEFINES
#include <strata/network/summary.ipp>
#endif
