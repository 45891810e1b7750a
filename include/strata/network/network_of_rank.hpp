// The network of one rank, if ranks divide its layers.
#pragma once
#include <cstddef>
#include <span>
#include <strata/network/divide_nodes.hpp>
#include <strata/network/divided_operations.hpp>
#include <strata/network/sequential.hpp>
#include <utility>

namespace strata {

namespace detail {
template <class Operation, int Ranks, node_division D>
struct operation_of_rank {
  using type = Operation;
};
template <class Operation, int Ranks, node_division D>
  requires(D.how == division_kind::columns)
struct operation_of_rank<Operation, Ranks, D> {
  using type = columns_of_rank<Operation, Ranks, D.gathers, D.descends>;
};
template <class Operation, int Ranks, node_division D>
  requires(D.how == division_kind::rows)
struct operation_of_rank<Operation, Ranks, D> {
  using type = rows_of_rank<Operation, Ranks, D.is_part, D.descends>;
};
template <class Operation, int Ranks, node_division D>
  requires(D.how == division_kind::classes)
struct operation_of_rank<Operation, Ranks, D> {
  using type = classes_of_rank<Operation, Ranks, D.descends>;
};

/// The items of a network with the operations of one rank. They are the same for all ranks.
template <class Items, class Map, int Ranks>
struct divided {};

template <class Items, class Map, int Ranks>
struct structure<divided<Items, Map, Ranks>> {
  static constexpr const auto& division = division_of_items<Items, Map, Ranks>::value;
  template <class... Node, int... I>
  static auto divide(type_list<Node...>, std::integer_sequence<int, I...>) -> type_list<
      node_type<typename operation_of_rank<typename Node::operation, Ranks, division.nodes[I]>::type, typename Node::layer>...>;
  using whole = node_types_of<Items>;
  using types = decltype(divide(whole{}, std::make_integer_sequence<int, length(whole{})>{}));

  static constexpr int record(recorder& r, int in) {
    const int first = r.size, out = structure<Items>::record(r, in);
    if (r.failed->happened()) return out;
    [&]<class... Node>(type_list<Node...>) {
      int i = first;
      ((r.nodes[i++].operation = &info_of<typename Node::operation>), ...);
    }(types{});
    for (int i = first; i < r.size; ++i) {
      tape_node& n = r.nodes[i];
      shape inputs[max_inputs] = {};
      for (int k = 0; k < n.arity; ++k) inputs[k] = r.nodes[n.input[k]].out;
      n.out = n.operation->output_shape(std::span<const shape>(inputs, std::size_t(n.arity))).value;
    }
    return out;
  }
};
}  // namespace detail

namespace core {
/// The network of one rank: the same layers, with a part of their parameters.
template <class Network, class Map, int Ranks>
struct network_of_rank {
  using whole = Network;
  using items = detail::divided<typename Network::items, Map, Ranks>;
  static constexpr int ranks = Ranks;
  static constexpr shape input_shape = Network::input_shape, output_shape = Network::output_shape;
};

/// A network that ranks divide.
template <class N>
concept divided_network = requires { N::ranks; };
}  // namespace core

namespace detail {
template <class Nodes>
inline constexpr int division_infos_of = 0;
template <class... Node>
inline constexpr division_info division_infos_of<type_list<Node...>>[sizeof...(Node)] = {
    division_info_of<typename Node::operation>...};
}  // namespace detail

namespace core {
/// The division of the operation of each node of a tape.
template <class Items>
inline constexpr const auto& divisions_of = detail::division_infos_of<node_types_of<Items>>;
}  // namespace core

namespace detail {
/// The number of classes whose predictions a rank stores; 0: it stores all.
template <class Items>
inline constexpr int classes_of_rank_in = [] {
  if constexpr (length(node_types_of<Items>{}) > 0)
    for (const division_info& each : divisions_of<Items>)
      if (each.classes > 0) return each.classes;
  return 0;
}();
}  // namespace detail

}  // namespace strata
