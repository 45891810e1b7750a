// graph<outputs...>: a network with several inputs, outputs and ways through it. A node is a struct, an edge is its name.
#pragma once
#include <algorithm>
#include <array>
#include <strata/layers/input.hpp>
#include <strata/network/sequential.hpp>
#include <type_traits>
#include <utility>

namespace strata {

/// Layers in a row that begin at an input, at another node, or at a join of several:
///   struct image : input<28, 28, 1> {};
///   struct seen : node<image, conv2d<32, 3, relu>, flatten> {};
///   struct both : node<concat<seen, tags>, dense<64, relu>> {};
/// A node is a struct with a name, and may be read by several others. In a branch, a node is what the branch begins at.
template <class From, class... Items>
struct node {};

/// Layers whose weights exist once, wherever the nodes of a graph name them. Their gradient is the sum over all uses.
///   struct encoder : shared<conv2d<32, 3, relu>, flatten, dense<64>> {};
///   struct code_of_left : node<left, encoder> {};
///   struct code_of_right : node<right, encoder> {};
template <class... Items>
struct shared {};

/// Items one after the other, `Times` times, each time with weights of their own.
template <int Times, class... Items>
struct repeated {};

// The words of the compile errors. None is ever defined.
template <class Node, int... Item>
struct in_node;
template <class Where, class What>
struct wrong_edge;
template <class Node, class Why>
struct wrong_node;

static_assert(core::max_ends == 8, "the next reason has this number");
namespace reasons {
inline constexpr reason a_node_begins_at_a_node_an_input_or_a_join_of_them{
    "a node begins at another node, at an input, or at a join such as concat<a, b> in which each branch begins at one"};
inline constexpr reason a_node_is_a_struct_with_a_name{"a node is a struct with a name: struct query : node<x, dense<64>> {};"};
inline constexpr reason an_input_of_a_graph_is_a_struct_with_a_name{
    "an input of a graph is a struct with a name: struct image : input<28, 28, 1> {};"};
inline constexpr reason in_a_row_of_layers_a_node_stands_first{
    "a node must be first in a row of layers, as the layers before it would have no reader; shared layers have no nodes"};
inline constexpr reason a_node_cannot_need_itself{"a node cannot need itself"};
inline constexpr reason a_graph_ends_in_nodes{"a graph lists its outputs, which are nodes: graph<kind, box>"};
inline constexpr reason a_graph_names_each_output_once{"a graph names each output once"};
inline constexpr reason a_graph_has_at_most_8_inputs_and_8_outputs{"a graph has at most 8 inputs and 8 outputs"};
inline constexpr reason nodes_named_inputs_and_shared_layers_belong_to_a_graph{
    "a node, an input with a name, and shared layers belong in a graph, not in a sequential"};
inline constexpr reason shared_layers_are_a_struct_with_a_name{
    "shared layers are a struct with a name: struct encoder : shared<dense<64, relu>, dense<16>> {};"};
inline constexpr reason shared_layers_receive_one_shape{"shared layers receive the same shape wherever they are used"};
inline constexpr reason shared_layers_have_no_batch_norm_whose_statistics_would_be_of_two_inputs{
    "shared layers have no batch_norm, whose statistics would be of two inputs: layer_norm normalizes each sample by itself"};
inline constexpr reason shared_layers_are_frozen_in_all_uses_or_in_none{
    "shared layers are frozen in all uses or in none: struct encoder : shared<frozen<dense<64>>> {};"};
inline constexpr reason repeated_takes_a_number_from_1_on_and_layers{
    "repeated takes a number of times, at least 1, and layers: repeated<12, dense<64, relu>>"};
}  // namespace reasons

namespace detail {
template <class From, class... Items>
type_list<From, Items...> row_of(const node<From, Items...>*);
template <class N>
using row_of_node = decltype(row_of(static_cast<const N*>(nullptr)));

template <class N>
inline constexpr bool is_nameless_node = false;
template <class From, class... Items>
inline constexpr bool is_nameless_node<node<From, Items...>> = true;

template <class N>
concept graph_node = std::is_class_v<N> && requires { row_of(static_cast<const N*>(nullptr)); };
template <class N>
concept graph_input = layer<N> && names_input<N>;
template <class N>
concept graph_place = graph_node<N> || graph_input<N>;

/// Its address identifies a node.
template <class N>
inline constexpr char identity_of_node = 0;

/// Records the failure of an item, unless there is one already.
constexpr void fail(recorder& r, int node, const reason& why, shape received = {}, shape wanted = {}) {
  if (!r.failed->happened()) *r.failed = {std::max(node, 0), &why, received, r.here, false, wanted};
}

/// A node among the items of another one records nothing: it is where that row goes on.
template <class N>
struct place_among_items {
  using types = type_list<>;
  static constexpr int record(recorder& r, int) {
    if (r.places) return std::max(r.places->find(&identity_of_node<N>), 0);
    fail(r, r.size - 1, reasons::nodes_named_inputs_and_shared_layers_belong_to_a_graph);
    return 0;
  }
};
template <graph_node N>
struct structure<N> : place_among_items<N> {};
template <graph_input N>
struct structure<N> : place_among_items<N> {};

template <class... Items>
branch<Items...> row_of_shared(const shared<Items...>*);
template <class N>
concept shared_layers = std::is_class_v<N> && requires { row_of_shared(static_cast<const N*>(nullptr)); };

/// The first use records the owners of the parameters. Each further one records nodes of its own, which use these parameters and
/// belong to the same layers.
template <shared_layers N>
struct structure<N> {
  using row = structure<decltype(row_of_shared(static_cast<const N*>(nullptr)))>;
  using types = typename row::types;

  static constexpr int record(recorder& r, int in) {
    const int begin = r.size, layers = r.layers, out = row::record(r, in);
    if (!r.places) {
      fail(r, begin, reasons::nodes_named_inputs_and_shared_layers_belong_to_a_graph);
      return out;
    }
    const int owner = r.places->find(&identity_of_node<N>);
    if (owner < 0) {
      r.places->add(&identity_of_node<N>, begin);
      return out;
    }
    r.layers = layers;
    for (int k = begin; k < r.size && !r.failed->happened(); ++k) {
      tape_node& node = r.nodes[k];
      const tape_node& first = r.nodes[owner + k - begin];
      const shape received = r.nodes[node.input[0]].out, wanted = r.nodes[first.input[0]].out;
      if (received != wanted)
        fail(r, k, reasons::shared_layers_receive_one_shape, received, wanted);
      else if (node.operation->traits.whole_batch)
        fail(r, k, reasons::shared_layers_have_no_batch_norm_whose_statistics_would_be_of_two_inputs, received);
      node.owner = first.owner >= 0 ? first.owner : owner + k - begin;
      node.layer_number = first.layer_number;
    }
    return out;
  }
};
template <class... Items>
struct structure<shared<Items...>> : structure<refused<reasons::shared_layers_are_a_struct_with_a_name>> {};

template <int Times, class... Items>
struct structure<repeated<Times, Items...>> : structure<refused<reasons::repeated_takes_a_number_from_1_on_and_layers>> {};
template <int Times, class... Items>
  requires(Times > 0 && sizeof...(Items) > 0)
struct structure<repeated<Times, Items...>> {
  using row = join_t<typename structure<Items>::types...>;
  template <int... I>
  static auto times(std::integer_sequence<int, I...>) -> join_t<std::conditional_t<(I >= 0), row, void>...>;
  using types = decltype(times(std::make_integer_sequence<int, Times>{}));

  static constexpr int record(recorder& r, int in) {
    const int level = r.here.depth++;
    for (int i = 0; i < Times; ++i) {
      r.enter(level, i);
      in = record_row<0, Items...>(r, in);
    }
    --r.here.depth;
    return in;
  }
};

/// How an item of a node is connected: the nodes that it names, whether it begins at these rather than at what is before it, and
/// whether nodes stand only where a row begins.
template <class Item>
struct edges_of_item {
  using names = type_list<>;
  static constexpr bool begins = false, is_sound = true;
};
template <graph_place N>
struct edges_of_item<N> {
  using names = type_list<N>;
  static constexpr bool begins = true, is_sound = true;
};
template <class... Items>
struct edges_of_row {
  using names = type_list<>;
  static constexpr bool begins = false, is_sound = true;
};
template <class First, class... More>
struct edges_of_row<First, More...> {
  using names = join_t<typename edges_of_item<First>::names, typename edges_of_item<More>::names...>;
  static constexpr bool begins = edges_of_item<First>::begins;
  static constexpr bool is_sound =
      edges_of_item<First>::is_sound && ((edges_of_item<More>::is_sound && !edges_of_item<More>::begins) && ...);
};
template <class... Items>
struct edges_of_item<branch<Items...>> : edges_of_row<Items...> {};
template <class... Items>
struct edges_of_item<sequential<Items...>> : edges_of_row<Items...> {};
template <class... Items>
struct edges_of_item<frozen<Items...>> : edges_of_row<Items...> {};
template <int Index, class... Items>
struct edges_of_item<on_device<Index, Items...>> : edges_of_row<Items...> {};
template <int Times, class... Items>
struct edges_of_item<repeated<Times, Items...>> : edges_of_row<branch<>, Items...> {};
template <shared_layers N>
struct edges_of_item<N> {
  using row = edges_of_item<decltype(row_of_shared(static_cast<const N*>(nullptr)))>;
  using names = type_list<>;
  static constexpr bool begins = false, is_sound = std::is_same_v<typename row::names, type_list<>>;
};
template <class Branches>
struct edges_of_branches;
template <class... Branches>
struct edges_of_branches<type_list<Branches...>> {
  using names = join_t<typename edges_of_item<Branches>::names...>;
  static constexpr bool begins = sizeof...(Branches) > 0 && (edges_of_item<Branches>::begins && ...),
                        is_sound = (edges_of_item<Branches>::is_sound && ...);
};
template <template <class...> class Join, class... Branches>
  requires join_layer<Join<Branches...>>
struct edges_of_item<Join<Branches...>>
    : edges_of_branches<typename branches_of<Join<Branches...>, type_list<Branches...>>::type> {};

/// The nodes that a node reads, and the complaint about its row.
template <class N>
struct edges_of_node;
template <class N>
  requires graph_input<N>
struct edges_of_node<N> {
  using complaint = no_complaint;
  using sources = type_list<>;
};
template <graph_node N>
struct edges_of_node<N> {
  template <class From, class... Items>
  static auto sentence(type_list<From, Items...>) {
    if constexpr (is_nameless_node<N>)
      return std::type_identity<wrong_node<N, because<reasons::a_node_is_a_struct_with_a_name>>>{};
    else if constexpr (is_nameless_input<From>)
      return std::type_identity<
          wrong_edge<in_node<N>, wrong_argument<From, because<reasons::an_input_of_a_graph_is_a_struct_with_a_name>>>>{};
    else if constexpr (!edges_of_item<From>::begins)
      return std::type_identity<
          wrong_edge<in_node<N>, wrong_argument<From, because<reasons::a_node_begins_at_a_node_an_input_or_a_join_of_them>>>>{};
    else if constexpr (!edges_of_row<From, Items...>::is_sound)
      return std::type_identity<wrong_edge<in_node<N>, because<reasons::in_a_row_of_layers_a_node_stands_first>>>{};
    else
      return std::type_identity<no_complaint>{};
  }
  template <class... Items>
  static typename edges_of_row<Items...>::names named(type_list<Items...>);
  using complaint = typename decltype(sentence(row_of_node<N>{}))::type;
  using sources = decltype(named(row_of_node<N>{}));
};

/// Stands in the list of nodes for a node that needs itself.
template <class N>
struct cycle {};
template <class N>
struct edges_of_node<cycle<N>> {
  using complaint = wrong_edge<in_node<N>, because<reasons::a_node_cannot_need_itself>>;
};

template <class T>
struct member {};
template <class... T>
struct members : member<T>... {};
template <class T, class... Among>
inline constexpr bool is_member = std::is_base_of_v<member<T>, members<Among...>>;

/// Appends nodes to a list, each after those that it needs, unless they are in it. One walk that carries the list of known nodes
/// costs far less than lists for each node that are united. `Open`: the nodes whose sources are being visited.
template <class Open, class Known, class Nodes>
struct walk;
template <bool IsKnown, class Open, class Known, class N>
struct visit {
  using type = Known;
};
template <class... Open, class... Known, class N>
struct visit<false, type_list<Open...>, type_list<Known...>, N> {
  template <class... Before>
  static type_list<Before..., N> then(type_list<Before...>);
  using type =
      decltype(then(typename walk<type_list<Open..., N>, type_list<Known...>, typename edges_of_node<N>::sources>::type{}));
};
template <class... Open, class... Known, class N>
  requires is_member<N, Open...>
struct visit<false, type_list<Open...>, type_list<Known...>, N> {
  using type = std::conditional_t<is_member<cycle<N>, Known...>, type_list<Known...>, type_list<Known..., cycle<N>>>;
};
template <class Open, class Known>
struct walk<Open, Known, type_list<>> {
  using type = Known;
};
template <class Open, class... Known, class N, class... More>
struct walk<Open, type_list<Known...>, type_list<N, More...>>
    : walk<Open, typename visit<is_member<N, Known...>, Open, type_list<Known...>, N>::type, type_list<More...>> {};

/// Inputs and nodes in the order of the tape.
template <class... Outputs>
using nodes_up_to = typename walk<type_list<>, type_list<>, type_list<Outputs...>>::type;

/// The translation of one node, as that of an item.
template <class N>
struct structure_of_node;
template <class N>
  requires graph_input<N>
struct structure_of_node<N> {
  using operation = decltype(input_of(static_cast<const N*>(nullptr)));
  using types = type_list<node_type<operation, N>>;
  static constexpr int record(recorder& r, int) {
    const int id = r.add(info_of<operation>, info_of_layer<N>, {});
    ++r.layers;
    return id;
  }
};
template <class Row>
struct structure_of_row;
template <class... Items>
struct structure_of_row<type_list<Items...>> : structure<branch<Items...>> {};
template <graph_node N>
struct structure_of_node<N> : structure_of_row<row_of_node<N>> {};

/// A node and the loss that follows it.
template <class N, class Loss>
struct node_with_loss {};

/// The items of a graph: its nodes in order, and for some of them a loss.
template <class Nodes, class Losses>
struct items_of_graph {};

template <class... N, class... Losses>
struct structure<items_of_graph<type_list<N...>, type_list<Losses...>>> {
  template <class Node>
  static type_list<> loss_of(...);
  template <class Node, class Loss>
  static type_list<Loss> loss_of(const member<node_with_loss<Node, Loss>>*);

  template <class Loss>
  struct after_node {
    using types = type_list<>;
    static constexpr int record(recorder&, int at) { return at; }
  };
  template <class Loss>
  struct after_node<type_list<Loss>> {
    using types = typename structure<Loss>::types;
    /// The loss belongs to the layer that it reads, so that layers have the same numbers with and without losses.
    static constexpr int record(recorder& r, int at) {
      const int layers = r.layers, loss = structure<Loss>::record(r, at);
      r.layers = layers;
      if (!r.failed->happened()) r.nodes[loss].layer_number = r.nodes[at].layer_number;
      return loss;
    }
  };
  template <class Node>
  using after = after_node<decltype(loss_of<Node>(static_cast<const members<Losses...>*>(nullptr)))>;

  using types = join_t<join_t<typename structure_of_node<N>::types, typename after<N>::types>...>;

  // Arrays of functions: clang refuses folds of more than 256 operands.
  static constexpr int record(recorder& r, int) {
    constexpr record_function nodes[] = {&structure_of_node<N>::record...}, losses[] = {&after<N>::record...};
    constexpr const char* identities[] = {&identity_of_node<N>...};
    named_place table[sizeof...(N) + length(types{})] = {};
    named_places places{table};
    r.places = &places;
    int last = 0;
    const int level = r.here.depth++;
    for (int k = 0; k < int(sizeof...(N)); ++k) {
      r.enter(level, k);
      last = nodes[k](r, 0);
      places.add(identities[k], last);
      losses[k](r, last);
    }
    --r.here.depth;
    r.places = nullptr;
    for (int k = 0; k < r.size && !r.failed->happened(); ++k)
      if (const int owner = r.nodes[k].owner; owner >= 0 && r.nodes[k].frozen != r.nodes[owner].frozen)
        fail(r, k, reasons::shared_layers_are_frozen_in_all_uses_or_in_none);
    return last;
  }
};

/// in_node<both, 1>: item 1 of the node, where item 0 is what it begins at.
template <class... N, class Losses, int Number, int... P>
struct place_of_failure<items_of_graph<type_list<N...>, Losses>, std::integer_sequence<int, Number, P...>> {
  using items = items_of_graph<type_list<N...>, Losses>;
  using type = in_node<at_t<failure_of<items>.where.index[0], type_list<N...>>, failure_of<items>.where.index[P]...>;
};

template <class N>
struct is_graph_input : std::bool_constant<graph_input<N>> {};

/// The complaint about the nodes of a graph.
template <class Nodes>
struct complaint_about_nodes;
template <class... N>
struct complaint_about_nodes<type_list<N...>> {
  static constexpr int wrong = first_false({std::is_same_v<typename edges_of_node<N>::complaint, no_complaint>..., true});
  static auto sentence() {
    if constexpr (wrong >= 0)
      return std::type_identity<typename edges_of_node<at_t<wrong, type_list<N...>>>::complaint>{};
    else if constexpr (length(filter_t<is_graph_input, N...>{}) > max_ends)
      return std::type_identity<
          wrong_argument<filter_t<is_graph_input, N...>, because<reasons::a_graph_has_at_most_8_inputs_and_8_outputs>>>{};
    else
      return std::type_identity<no_complaint>{};
  }
  using type = typename decltype(sentence())::type;
};

template <class... Outputs>
struct outputs_of_graph {
  static constexpr int wrong = first_false({(graph_node<Outputs> && !is_nameless_node<Outputs>)..., true});
  static auto sentence() {
    if constexpr (sizeof...(Outputs) == 0)
      return std::type_identity<wrong_argument<nothing, because<reasons::a_graph_ends_in_nodes>>>{};
    else if constexpr (wrong >= 0)
      return std::type_identity<
          wrong_argument<at_t<wrong, type_list<Outputs..., void>>, because<reasons::a_graph_ends_in_nodes>>>{};
    else if constexpr (sizeof...(Outputs) > max_ends)
      return std::type_identity<
          wrong_argument<type_list<Outputs...>, because<reasons::a_graph_has_at_most_8_inputs_and_8_outputs>>>{};
    else if constexpr (((times_among<Outputs, Outputs...> > 1) || ...))
      return std::type_identity<wrong_argument<type_list<Outputs...>, because<reasons::a_graph_names_each_output_once>>>{};
    else
      return std::type_identity<no_complaint>{};
  }
  using type = typename decltype(sentence())::type;
};

template <class Items, int Inputs, int Outputs>
struct shapes_of_graph {};
/// A graph of one input and one output is used as a sequential is.
template <class Items>
struct shapes_of_graph<Items, 1, 1> {
  static constexpr shape input_shape = tape_of<Items>.nodes[0].out;
  static constexpr shape output_shape = tape_of<Items>.nodes[tape_of<Items>.size - 1].out;
};

/// The first node on the tape of each node of a graph.
template <class... N>
constexpr std::array<int, sizeof...(N)> begins_of_nodes(type_list<N...>) {
  int next = 0;
  return {std::exchange(next, next + length(typename structure_of_node<N>::types{}))...};
}

/// What a graph has, and the complaint about it. If something is wrong with its outputs or edges, it has nothing.
template <class Complaint, class Nodes, class... Outputs>
struct members_of_graph {
  using complaint = Complaint;
};
template <class... N, class... Outputs>
struct members_of_graph<no_complaint, type_list<N...>, Outputs...>
    : shapes_of_graph<items_of_graph<type_list<N...>, type_list<>>, length(filter_t<is_graph_input, N...>{}),
                      sizeof...(Outputs)> {
  using nodes = type_list<N...>;
  using inputs = filter_t<is_graph_input, N...>;
  using outputs = type_list<Outputs...>;
  using items = items_of_graph<nodes, type_list<>>;
  using complaint = typename verdict<items>::type;

  /// The node of the tape at which each output ends.
  static constexpr std::array<int, sizeof...(Outputs)> ends_of_outputs() { return {end_of<Outputs>()...}; }

 private:
  template <class Node>
  static constexpr int end_of() {
    constexpr int size = length(typename structure_of_node<Node>::types{});
    if constexpr (size > 0)
      return begins_of_nodes(nodes{})[std::size_t(index_in<Node>(nodes{}))] + size - 1;
    else
      return end_of<at_t<0, row_of_node<Node>>>();  // it has no layers of its own
  }
};

template <class Complaint, class... Outputs>
struct found_in_graph {
  using type = members_of_graph<Complaint, void>;
};
template <class... Outputs>
struct found_in_graph<no_complaint, Outputs...> {
  using nodes = nodes_up_to<Outputs...>;
  using type = members_of_graph<typename complaint_about_nodes<nodes>::type, nodes, Outputs...>;
};
template <class... Outputs>
using members_of_graph_t = typename found_in_graph<typename outputs_of_graph<Outputs...>::type, Outputs...>::type;
}  // namespace detail

/// A network whose arguments are its outputs, in the order of the predictions. Its inputs and inner nodes are found from them.
/// Edges and shapes are checked as soon as the type is complete.
///   using net = graph<kind, box>;
/// With one input and one output it may be used as a sequential.
template <class... Outputs>
struct graph : detail::members_of_graph_t<Outputs...> {
  static_assert(detail::diagnosed<typename detail::members_of_graph_t<Outputs...>::complaint>[0]);
};

namespace detail {
/// Whether layers of some items use the parameters of others.
template <class Items>
inline constexpr bool shares_weights = [] {
  for (const tape_node& node : tape_of<Items>.nodes)
    if (node.owner >= 0) return true;
  return false;
}();

template <class N>
inline constexpr bool is_graph = false;
template <class... Outputs>
inline constexpr bool is_graph<graph<Outputs...>> = true;
/// A graph whose inputs and outputs have to be named.
template <class N>
concept graph_of_several_ends = is_graph<N> && !requires { N::input_shape; };
}  // namespace detail

}  // namespace strata
