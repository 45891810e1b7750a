// compare<node>(loss, metrics...): what the outputs of a graph are compared with, and the program that follows from it.
#pragma once
#include <array>
#include <cstddef>
#include <strata/base/node_name.hpp>
#include <strata/losses/predicted_only.hpp>
#include <strata/network/graph.hpp>
#include <strata/program/program.hpp>
#include <string_view>
#include <tuple>
#include <type_traits>

namespace strata {

/// The factor of one loss in the loss of a graph, and so in its gradient: `compare<box>(mean_squared_error{}, loss_weight(0.2))`.
struct loss_weight {
  double value;
  constexpr explicit loss_weight(double factor) : value(factor) {}
};

namespace core {
/// An output of a graph with its loss and metrics, a type_list; compare makes it.
template <class Node, class Loss, class Metrics>
struct comparison {
  using node = Node;
  using loss = Loss;
  using metrics = Metrics;

  double weight = 1;
};
}  // namespace core

namespace detail {
template <class T>
struct is_no_loss_weight : std::bool_constant<!std::is_same_v<T, loss_weight>> {};

template <class T>
inline constexpr bool is_comparison = false;
template <class Node, class Loss, class Metrics>
inline constexpr bool is_comparison<comparison<Node, Loss, Metrics>> = true;
}  // namespace detail

/// Compares an output of a graph with its truth: `compare<kind>(sparse_categorical_crossentropy{}, accuracy{})`. The loss of the
/// graph is the sum of its losses, each times its loss_weight.
template <class Node, class Loss, class... Extra>
  requires detail::graph_place<Node>
constexpr core::comparison<Node, Loss, detail::filter_t<detail::is_no_loss_weight, Extra...>> compare(Loss,
                                                                                                      const Extra&... extra) {
  core::comparison<Node, Loss, detail::filter_t<detail::is_no_loss_weight, Extra...>> made;
  [[maybe_unused]] const auto weigh = [&](const auto& each) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(each)>, loss_weight>) made.weight = each.value;
  };
  (weigh(extra), ...);
  return made;
}

namespace detail {
/// The comparison of a node, in a list.
template <class Node>
type_list<> comparison_of(...);
template <class Node, class Loss, class Metrics>
type_list<comparison<Node, Loss, Metrics>> comparison_of(const member<comparison<Node, Loss, Metrics>>*);

/// The comparisons in the order in which the tape has their nodes.
template <class Nodes, class... Comparisons>
struct in_order_of_nodes;
template <class... N, class... Comparisons>
struct in_order_of_nodes<type_list<N...>, Comparisons...> {
  using type = join_t<decltype(comparison_of<N>(static_cast<const members<Comparisons...>*>(nullptr)))...>;
};

/// A comparison with predicted_only for each output that no comparison names.
template <class... Node, class... Output>
auto not_compared(type_list<Node...>, type_list<Output...>) -> join_t<
    std::conditional_t<is_member<Output, Node...>, type_list<>, type_list<comparison<Output, predicted_only, type_list<>>>>...>;

/// The program of a graph whose comparisons are in the order of the tape.
template <class Graph, class Optimizer, class Precision, class Comparisons>
struct program_of_graph;
template <class Graph, class Optimizer, class Precision, class... Comparisons>
struct program_of_graph<Graph, Optimizer, Precision, type_list<Comparisons...>> {
  using network = Graph;
  using optimizer = Optimizer;
  using precision = Precision;
  using value_type = typename Precision::value_type;
  using items =
      items_of_graph<typename Graph::nodes, type_list<node_with_loss<typename Comparisons::node, typename Comparisons::loss>...>>;
  using outputs = type_list<compared_output<typename Comparisons::loss, typename Comparisons::metrics>...>;
  /// The nodes that the outputs are, in the same order.
  using output_nodes = type_list<typename Comparisons::node...>;
};
}  // namespace detail

namespace core {
/// A program whose inputs and outputs have names.
template <class Program>
concept graph_program = requires { typename Program::output_nodes; };
}  // namespace core

namespace detail {
/// The shape of a sample at an input or an output of a program of a graph.
template <class Program, class Node>
inline constexpr shape shape_of_end = [] {
  constexpr const auto& t = tape_of<typename Program::items>;
  constexpr tape_ends ends = ends_of(t);
  constexpr int input = index_in<Node>(typename Program::network::inputs{});
  if constexpr (input >= 0)
    return t.nodes[ends.inputs[input]].out;
  else
    return t.nodes[ends.losses[index_in<Node>(typename Program::output_nodes{})]].out;
}();

/// The names of inputs and outputs, in the order of the tape; empty in a program without names.
struct end_names {
  std::string_view inputs[core::max_ends] = {}, outputs[core::max_ends] = {};
};
template <class Program>
inline constexpr end_names names_of_ends = [] {
  end_names names;
  if constexpr (core::graph_program<Program>) {
    const auto set = []<class... Node>(std::string_view* to, core::type_list<Node...>) { ((*to++ = node_name<Node>), ...); };
    set(names.inputs, typename Program::network::inputs{});
    set(names.outputs, typename Program::output_nodes{});
  }
  return names;
}();

/// The loss at an output of the program of a graph.
template <class Program, class Node>
using loss_at = typename at_t<index_in<Node>(typename Program::output_nodes{}), typename Program::outputs>::loss;

template <class Program, template <class> class Is>
struct outputs_whose_loss {
  template <class... Node>
  static auto find(type_list<Node...>)
      -> join_t<std::conditional_t<Is<loss_at<Program, Node>>::value, type_list<Node>, type_list<>>...>;
  using type = decltype(find(typename Program::network::outputs{}));
};
template <class Loss>
struct is_loss_to_report : std::bool_constant<!std::is_same_v<Loss, predicted_only>> {};
template <class Loss>
struct is_loss_with_truth : std::bool_constant<Loss::labels != label_kind::none> {};
/// The outputs that are not only predicted, and those that are compared with a truth, in the order of the graph.
template <class Program>
using outputs_with_loss = typename outputs_whose_loss<Program, is_loss_to_report>::type;
template <class Program>
using outputs_with_truth = typename outputs_whose_loss<Program, is_loss_with_truth>::type;

/// The numbers of outputs_with_loss among the outputs of the program, in the order in which they are reported.
template <class Program>
inline constexpr auto outputs_in_order = []<class... Node>(type_list<Node...>) {
  return std::array<std::size_t, sizeof...(Node)>{std::size_t(index_in<Node>(typename Program::output_nodes{}))...};
}(outputs_with_loss<Program>{});
}  // namespace detail

}  // namespace strata
