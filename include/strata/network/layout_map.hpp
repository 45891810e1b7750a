// layout_map<rules...>: which layers of a network several ranks divide, and how; and the network of one rank.
#pragma once
#include <cstddef>
#include <strata/base/reason.hpp>
#include <strata/network/divided_operations.hpp>
#include <strata/network/sequential.hpp>
#include <string_view>
#include <type_traits>
#include <utility>

namespace strata {

/// A name of a layer as summary prints it; `*` stands for any characters.
template <std::size_t Size>
struct layer_pattern {
  char text[Size] = {};
  constexpr layer_pattern(const char (&name)[Size]) {
    for (std::size_t i = 0; i < Size; ++i) text[i] = name[i];
  }
  constexpr bool matches(std::string_view name) const { return matches({text, Size - 1}, name); }

 private:
  static constexpr bool matches(std::string_view pattern, std::string_view name) {
    std::size_t p = 0, n = 0, star = pattern.size(), from = 0;
    while (n < name.size())
      if (p < pattern.size() && pattern[p] == '*')
        star = p++, from = n;
      else if (p < pattern.size() && pattern[p] == name[n])
        ++p, ++n;
      else if (star < pattern.size())
        p = star + 1, n = ++from;
      else
        return false;
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
  }
};

/// Each rank has a part of the units of a dense layer, of the filters of a conv2d, or of the width of an embedding. The results
/// are those of the undivided layer, bit for bit, except where one device computes a conv2d together with the max_pool2d after
/// it, and in mixed precision.
struct by_columns {};
/// Each rank has a part of the rows of an embedding's table, with the results of the undivided layer, bit for bit; or the weights
/// of a part of the inputs of a dense layer. There the output is a sum over ranks, so its bits depend on their number. Where a
/// dense layer by rows follows one by columns, possibly with an activation between them, nothing is sent between the two, and the
/// gradient of the input of the first one is a sum over ranks, too. Shoeybi et al., "Megatron-LM: training multi-billion
/// parameter language models using model parallelism" (2019), https://arxiv.org/abs/1909.08053
struct by_rows {};
/// For the last dense layer of a network that a crossentropy of classes compares: each rank has a part of the classes, with their
/// logits and probabilities. Ranks exchange the largest logits and the sums of exponentials, and compute the loss and its
/// gradient for their classes. Sums are added in the order of ranks, so bits depend on their number. Shoeybi et al., section 3.
struct by_classes {};

namespace detail {
enum class division_kind { whole, columns, rows, classes };
template <class How>
inline constexpr division_kind division_kind_of = division_kind::whole;
template <>
inline constexpr division_kind division_kind_of<by_columns> = division_kind::columns;
template <>
inline constexpr division_kind division_kind_of<by_rows> = division_kind::rows;
template <>
inline constexpr division_kind division_kind_of<by_classes> = division_kind::classes;
}  // namespace detail

/// rule<"dense*", by_columns>: how the layers with such names are divided.
template <layer_pattern Name, class How = detail::nothing>
struct rule {
  using how = How;
  template <class Layer>
  static constexpr bool matches(std::string_view name) {
    return Name.matches(name);
  }
};
/// rule_for<dense<64, relu>, by_columns>: how all layers of that type are divided.
template <class Type, class How = detail::nothing>
struct rule_for {
  using how = How;
  template <class Layer>
  static constexpr bool matches(std::string_view) {
    return std::is_same_v<Layer, Type>;
  }
};

/// layout_map<rule<"dense", by_columns>, rule<"dense_1", by_rows>>: for each layer the first rule that matches it counts. Layers
/// that no rule matches are computed by every rank; so layout_map<> divides nothing. https://keras.io/api/distribution/layout_map
template <class... Rules>
struct layout_map {};

// The words of the sentences. None is ever defined.
template <int Index>
struct at_rule;
template <class Where, class Rule, class Why>
struct rule_decides_nothing;
template <class Layer, class Among, class Why>
struct layer_cannot_be_divided;
template <int Ranks>
struct among_ranks;
inline constexpr reason after_the_number_of_ranks_comes_a_layout_map_of_rules_such_as_rule_of_a_name_and_by_columns{
    "after the number of ranks comes a layout_map of rules: tensor_parallel<2, layout_map<rule<\"dense*\", by_columns>>>{}"};
inline constexpr reason a_layout_map_has_rules_such_as_rule_of_a_name_and_by_columns{
    "a layout_map has rules: layout_map<rule<\"dense*\", by_columns>>"};
inline constexpr reason a_layer_is_divided_by_columns_by_rows_or_by_classes{
    "a layer is divided by_columns, by_rows or by_classes: rule<\"dense*\", by_columns>"};
inline constexpr reason no_layer_has_such_a_name_or_type_or_an_earlier_rule_matches_it{
    "no layer has such a name or type, or an earlier rule matches it"};
inline constexpr reason only_dense_conv2d_without_groups_and_embedding_can_be_divided{
    "only dense layers, conv2d without groups and embedding can be divided"};
inline constexpr reason only_dense_and_embedding_can_be_divided_by_rows{"only dense layers and embedding can be divided by_rows"};
inline constexpr reason by_columns_the_number_of_ranks_divides_the_units_filters_or_width{
    "by_columns, the number of ranks divides the units, filters or width of the layer"};
inline constexpr reason by_rows_the_number_of_ranks_divides_the_number_of_inputs{
    "by_rows, the number of ranks divides the number of inputs of the layer"};
inline constexpr reason by_classes_divides_the_dense_layer_that_ends_a_network_alone_or_with_softmax{
    "by_classes divides the dense layer that ends a network, alone or with softmax"};
inline constexpr reason by_classes_the_number_of_ranks_divides_the_number_of_classes{
    "by_classes, the number of ranks divides the number of classes"};

namespace detail {
struct node_division {
  division_kind how = division_kind::whole;
  bool gathers = true, is_part = false, descends = false;
};

template <int N>
struct network_division {
  node_division nodes[N];
  int bad_node = -1, unused_rule = -1;  // -1: none
  const reason* why = nullptr;          // of the bad node
  constexpr bool fits() const { return bad_node < 0 && unused_rule < 0; }
};

/// The name of the layer of a node: name, or name_1, name_2, ... after others of that name.
struct layer_name {
  char text[80] = {};
  int size = 0;

  constexpr void add(std::string_view more) {
    for (const char c : more)
      if (size < int(sizeof text)) text[size++] = c;
  }
  constexpr std::string_view view() const { return {text, std::size_t(size)}; }
};
template <int N>
constexpr layer_name name_of_layer(const tape<N>& t, int node) {
  layer_name name;
  const std::string_view own = t.nodes[node].layer->name;
  name.add(own);
  int before = 0;
  for (int i = 0; i < node; ++i)
    before += t.nodes[i].layer_number != t.nodes[node].layer_number && t.nodes[i].layer_number != t.nodes[i + 1].layer_number &&
              t.nodes[i].layer->name == own;
  if (before == 0) return name;
  char digits[12] = {};
  int count = 0;
  for (; before > 0; before /= 10) digits[count++] = char('0' + before % 10);
  name.add("_");
  while (count > 0) name.add({&digits[--count], 1});
  return name;
}

/// What is known of the operation of a node.
struct node_divisibility {
  int columns = 0;  // 0: it cannot be divided
  bool by_rows = false, by_classes = false;
};
template <class Operation>
inline constexpr node_divisibility divisibility_of{};
template <divisible Operation>
inline constexpr node_divisibility divisibility_of<Operation>{division_of<Operation>::columns, divisible_by_rows<Operation>,
                                                              divisible_by_classes<Operation>};

/// Whether a network ends with this node, or with a softmax that reads it.
template <int N>
constexpr bool makes_logits(const tape<N>& t, int node) {
  return node == N - 1 || (node == N - 2 && t.nodes[N - 1].operation == &info_of<softmax>);
}

/// The node by rows that reads the output of a node by columns, with element-wise functions between them at most; -1: none.
template <int N>
constexpr int reader_by_rows(const tape<N>& t, const network_division<N>& d, int node) {
  for (int i = node; i + 1 < N && t.nodes[i].consumers == 1; ++i) {
    const tape_node& next = t.nodes[i + 1];
    if (next.arity != 1 || next.input[0] != i) return -1;
    if (d.nodes[i + 1].how == division_kind::rows) return i + 1;
    if (!next.operation->elementwise) return -1;
  }
  return -1;
}

template <int N, int Rules>
constexpr network_division<N> divide_nodes(const tape<N>& t, const node_divisibility (&can)[N],
                                           const bool (&matches)[Rules + 1][N], const division_kind (&kinds)[Rules + 1],
                                           int ranks) {
  network_division<N> d;
  bool used[Rules + 1] = {};
  const auto refuse = [&](int node, const reason& why) {
    if (d.bad_node < 0) d.bad_node = node, d.why = &why;
  };
  for (int i = 0; i < N; ++i) {
    int r = 0;
    while (r < Rules && !matches[r][i]) ++r;
    if (r == Rules) continue;
    used[r] = true;
    const division_kind how = kinds[r];
    if (can[i].columns == 0) {
      bool layer_can = false;
      for (int k = 0; k < N; ++k)
        layer_can = layer_can || (t.nodes[k].layer_number == t.nodes[i].layer_number && can[k].columns > 0);
      if (!layer_can) refuse(i, only_dense_conv2d_without_groups_and_embedding_can_be_divided);
      continue;
    }
    const bool by_rows = how == division_kind::rows, by_classes = how == division_kind::classes;
    if (by_classes && !(can[i].by_classes && makes_logits(t, i)))
      refuse(i, by_classes_divides_the_dense_layer_that_ends_a_network_alone_or_with_softmax);
    if (by_rows && !can[i].by_rows) refuse(i, only_dense_and_embedding_can_be_divided_by_rows);
    if (!by_rows && can[i].columns % ranks != 0)
      refuse(i, by_classes ? by_classes_the_number_of_ranks_divides_the_number_of_classes
                           : by_columns_the_number_of_ranks_divides_the_units_filters_or_width);
    if (by_rows && !t.nodes[i].operation->looks_up && t.in(i).last() % ranks != 0)
      refuse(i, by_rows_the_number_of_ranks_divides_the_number_of_inputs);
    d.nodes[i].how = how;
  }
  for (int r = Rules - 1; r >= 0; --r)
    if (!used[r]) d.unused_rule = r;

  // Below the first trained parameters no gradient is computed.
  bool trains[N] = {};
  parameter owned[max_parameters] = {};
  for (int i = 0; i < N; ++i) {
    if (t.nodes[i].is_input()) continue;
    for (int k = 0; k < t.nodes[i].arity; ++k) d.nodes[i].descends = d.nodes[i].descends || trains[t.nodes[i].input[k]];
    const int count = t.nodes[i].operation->parameters(t.in(i), owned);
    trains[i] = d.nodes[i].descends || (count > 0 && !t.nodes[i].frozen && owned[0].trainable);
  }
  for (int i = 0; i < N; ++i)
    if (d.nodes[i].how == division_kind::columns)
      if (const int reader = reader_by_rows(t, d, i); reader >= 0) d.nodes[i].gathers = false, d.nodes[reader].is_part = true;
  return d;
}

template <class Items, class Map, int Ranks>
struct division_of_items;
template <class Items, class... Rules, int Ranks>
struct division_of_items<Items, layout_map<Rules...>, Ranks> {
  static constexpr auto value = [] {
    return []<class... Node>(type_list<Node...>) {
      constexpr const auto& t = tape_of<Items>;
      constexpr int n = sizeof...(Node), rules = sizeof...(Rules);
      node_divisibility can[n] = {divisibility_of<typename Node::operation>...};
      bool matches[rules + 1][n] = {};
      constexpr division_kind kinds[rules + 1] = {division_kind_of<typename Rules::how>..., division_kind::whole};
      if (!t.well_shaped()) return network_division<n>{};
      int i = 0;
      const auto match = [&]<class Layer>(std::type_identity<Layer>) {
        const layer_name name = name_of_layer(t, i);
        int r = 0;
        ((matches[r++][i] = Rules::template matches<Layer>(name.view())), ...);
        ++i;
      };
      (match(std::type_identity<typename Node::layer>{}), ...);
      return divide_nodes<n, rules>(t, can, matches, kinds, Ranks);
    }(node_types_of<Items>{});
  }();
};

template <class T>
concept division_rule = requires { typename T::how; } && division_kind_of<typename T::how> != division_kind::whole;

/// no_complaint, or the first sentence about the rules.
template <class Network, class Map, int Ranks>
struct layout_verdict {
  using type =
      wrong_argument<Map, because<after_the_number_of_ranks_comes_a_layout_map_of_rules_such_as_rule_of_a_name_and_by_columns>>;
};
template <class Network, class... Rules, int Ranks>
struct layout_verdict<Network, layout_map<Rules...>, Ranks> {
  static constexpr int wrong = [] {
    const bool is_right[] = {division_rule<Rules>..., false};
    int first = 0;
    while (is_right[first]) ++first;
    return first;
  }();
  using rule = at_t<wrong, type_list<Rules...>>;
  using type =
      wrong_argument<rule,
                     because<(requires { typename rule::how; } ? a_layer_is_divided_by_columns_by_rows_or_by_classes
                                                               : a_layout_map_has_rules_such_as_rule_of_a_name_and_by_columns)>>;
};
template <class Network, class... Rules, int Ranks>
  requires(division_rule<Rules> && ...)
struct layout_verdict<Network, layout_map<Rules...>, Ranks> {
  static constexpr const auto& division = division_of_items<typename Network::items, layout_map<Rules...>, Ranks>::value;
  static constexpr const reason& words() { return *division.why; }
  static auto sentence() {
    if constexpr (division.unused_rule >= 0)
      return std::type_identity<
          rule_decides_nothing<at_rule<division.unused_rule>, at_t<division.unused_rule, type_list<Rules...>>,
                               because<no_layer_has_such_a_name_or_type_or_an_earlier_rule_matches_it>>>{};
    else if constexpr (division.bad_node >= 0)
      return std::type_identity<
          layer_cannot_be_divided<by_layer<typename at_t<division.bad_node, node_types_of<typename Network::items>>::layer>,
                                  among_ranks<Ranks>, because<words()>>>{};
    else
      return std::type_identity<no_complaint>{};
  }
  using type = typename decltype(sentence())::type;
};

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

/// The items of a network with the operations of one rank. All ranks have the same.
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
    if (r.failed->node >= 0) return out;
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

/// The network of one rank: the same layers, of which it has a part of the parameters.
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

namespace detail {
template <class Nodes>
inline constexpr int division_infos_of = 0;
template <class... Node>
inline constexpr division_info division_infos_of<type_list<Node...>>[sizeof...(Node)] = {
    division_info_of<typename Node::operation>...};
}  // namespace detail

/// How the operation of each node of a tape is divided.
template <class Items>
inline constexpr const auto& divisions_of = detail::division_infos_of<node_types_of<Items>>;

namespace detail {
/// The classes of a rank, of whose predictions it keeps a part; 0: it keeps all.
template <class Items>
inline constexpr int classes_of_rank_in = [] {
  if constexpr (length(node_types_of<Items>{}) > 0)
    for (const division_info& each : divisions_of<Items>)
      if (each.classes > 0) return each.classes;
  return 0;
}();
}  // namespace detail

}  // namespace strata
