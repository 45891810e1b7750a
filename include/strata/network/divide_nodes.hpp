// The division of each node of a network by a layout_map, or the reason why it is impossible.
#pragma once
#include <cstddef>
#include <strata/base/reason.hpp>
#include <strata/network/divided_operations.hpp>
#include <strata/network/layout_map.hpp>
#include <strata/network/sequential.hpp>
#include <string_view>
#include <type_traits>

namespace strata {

namespace reasons {
inline constexpr reason only_dense_conv2d_without_groups_and_embedding_can_be_divided{
    "only dense layers, conv2d without groups and embedding can be divided"};
inline constexpr reason only_dense_and_embedding_can_be_divided_by_rows{"only dense layers and embedding can be divided by_rows"};
inline constexpr reason by_columns_the_number_of_ranks_divides_the_units_filters_or_width{
    "with by_columns, the number of ranks must divide the units, filters or width of the layer"};
inline constexpr reason by_rows_the_number_of_ranks_divides_the_number_of_inputs{
    "with by_rows, the number of ranks must divide the number of inputs of the layer"};
inline constexpr reason by_classes_divides_the_dense_layer_that_ends_a_network_alone_or_with_softmax{
    "by_classes divides the dense layer that ends a network, alone or with softmax"};
inline constexpr reason by_classes_the_number_of_ranks_divides_the_number_of_classes{
    "with by_classes, the number of ranks must divide the number of classes"};
}  // namespace reasons

namespace detail {
struct node_division {
  division_kind how = division_kind::whole;
  bool gathers = true, is_part = false, descends = false;
};

template <int N>
struct network_division {
  node_division nodes[N];
  int bad_node = -1, unused_rule = -1;  // -1: none
  const reason* why = nullptr;          // the reason for bad_node
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

/// How the operation of a node can be divided.
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

/// The node by rows that reads the output of a node by columns, with only element-wise functions between them; -1: none.
template <int N>
constexpr int reader_by_rows(const tape<N>& t, const network_division<N>& d, int node) {
  for (int i = node; i + 1 < N && t.nodes[i].consumers == 1; ++i) {
    const tape_node& next = t.nodes[i + 1];
    if (next.arity != 1 || next.input[0] != i) return -1;
    if (d.nodes[i + 1].how == division_kind::rows) return i + 1;
    if (!next.operation->traits.elementwise) return -1;
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
      if (!layer_can) refuse(i, reasons::only_dense_conv2d_without_groups_and_embedding_can_be_divided);
      continue;
    }
    const bool by_rows = how == division_kind::rows, by_classes = how == division_kind::classes;
    if (by_classes && !(can[i].by_classes && makes_logits(t, i)))
      refuse(i, reasons::by_classes_divides_the_dense_layer_that_ends_a_network_alone_or_with_softmax);
    if (by_rows && !can[i].by_rows) refuse(i, reasons::only_dense_and_embedding_can_be_divided_by_rows);
    if (!by_rows && can[i].columns % ranks != 0)
      refuse(i, by_classes ? reasons::by_classes_the_number_of_ranks_divides_the_number_of_classes
                           : reasons::by_columns_the_number_of_ranks_divides_the_units_filters_or_width);
    if (by_rows && !t.nodes[i].operation->traits.looks_up && t.in(i).last() % ranks != 0)
      refuse(i, reasons::by_rows_the_number_of_ranks_divides_the_number_of_inputs);
    d.nodes[i].how = how;
  }
  for (int r = Rules - 1; r >= 0; --r)
    if (!used[r]) d.unused_rule = r;

  // No gradient is computed below the first trained parameters.
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
}  // namespace detail

}  // namespace strata
