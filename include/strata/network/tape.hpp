// The tape: a network as a flat constexpr array of operations that name their inputs (SSA), and a flat list of their types.
// Layers and kernels are types; between them, passes over the tape are ordinary constexpr functions of values.
#pragma once
#include <strata/concepts/ends.hpp>
#include <strata/concepts/layer.hpp>
#include <strata/layers/branch.hpp>
#include <strata/layers/frozen.hpp>
#include <strata/layers/input.hpp>
#include <strata/layers/on_device.hpp>
#include <strata/layers/refused.hpp>

namespace strata {

namespace core {
/// The place of an item in a network: indices from the outside in, such as item 3, branch 1, item 0.
struct item_path {
  static constexpr int max_depth = 12;
  int index[max_depth] = {};
  int depth = 0;
};

/// One operation. The nodes without inputs are the inputs of the network: node 0, and further ones if it has several.
struct tape_node {
  const operation_info* operation = nullptr;
  const layer_info* layer = nullptr;
  int layer_number = 0;        // index of the layer; the nodes of a layer share it
  int input[max_inputs] = {};  // indices of the nodes whose outputs it reads
  int arity = 0;
  int consumers = 0;    // number of inputs of later nodes that read it
  bool frozen = false;  // its parameters are not trained
  int owner = -1;       // the node whose parameters it uses; -1: it has its own
  int device = -1;      // device of the innermost `on_device`; -1: none
  shape out{};          // shape of one sample

  constexpr bool is_input() const { return arity == 0; }
};

/// The first item that does not fit.
struct tape_failure {
  int node = -1;                // below 0: every item fits
  const reason* why = nullptr;  // null for an unknown option of the layer
  shape received{};
  item_path where;
  bool misused_option = false;
  shape other{};  // a join: the shape that differs from the received one; others: the shape that the operation takes, if given

  constexpr bool happened() const { return node >= 0; }
};
}  // namespace core

namespace detail {
template <int N>
struct tape {
  static constexpr int size = N;
  tape_node nodes[N];
  tape_failure failed;

  constexpr bool well_shaped() const { return !failed.happened(); }
  /// The shape of input k of node i.
  constexpr shape in(int i, int k = 0) const { return nodes[nodes[i].input[k]].out; }
};

/// What a node has of an input of the network: views have all numbers of it, in their order, and behind `columns` those of some
/// columns. Row r of the node's numbers, `count` of them, begins at element r * all + first of the input.
struct part_of_input {
  int input = -1;  // its number; -1: the node has something else
  int all = 1, first = 0, count = 1;

  constexpr bool exists() const { return input >= 0; }
};

/// A second `columns` is something else.
constexpr part_of_input input_of_node(const tape_node* nodes, int id) {
  part_of_input part;
  bool has_columns = false;
  while (!nodes[id].is_input()) {
    const tape_node& node = nodes[id];
    const int first = node.operation->traits.first_column;
    if (first >= 0 && !has_columns)
      has_columns = true, part.all = nodes[node.input[0]].out.last(), part.first = first, part.count = node.out.last();
    else if (!node.operation->traits.is_view)
      return {};
    id = node.input[0];
  }
  part.input = 0;
  for (int i = 0; i < id; ++i) part.input += nodes[i].is_input();
  return part;
}

/// The nodes at which a network begins and ends: inputs and losses, in the order of the tape and of their indices.
struct tape_ends {
  int input_count = 0, output_count = 0;
  int inputs[max_ends] = {}, losses[max_ends] = {};
};
template <int N>
constexpr tape_ends ends_of(const tape<N>& t) {
  tape_ends ends;
  if (!t.well_shaped()) return ends;
  for (int i = 0; i < N; ++i) {
    if (t.nodes[i].is_input()) ends.inputs[ends.input_count++] = i;
    if (t.nodes[i].operation->is_loss) ends.losses[ends.output_count++] = i;
  }
  return ends;
}
}  // namespace detail

static_assert(core::max_inputs == 8, "the next reason has this number");
namespace reasons {
inline constexpr reason a_join_takes_at_most_8_branches{"a join takes at most 8 branches: nest joins"};
inline constexpr reason embedding_takes_the_row_indices_of_the_batch{
    "embedding takes the row indices of the batch: only flatten, reshape and one columns may be between it and input"};
}  // namespace reasons

namespace detail {

/// The branch of a join to report: the first that differs from branch 0 in more than its channels; else in its channels; else the
/// last.
constexpr int odd_one_out(std::span<const shape> in) {
  int odd = int(in.size()) - 1;
  bool only_channels = true;
  for (int k = int(in.size()) - 1; k > 0; --k) {
    shape s = in[std::size_t(k)];
    if (s == in[0]) continue;
    const bool same_rank = s.rank() == in[0].rank();
    if (same_rank) s[s.rank() - 1] = in[0].last();
    if (const bool channels = same_rank && s == in[0]; !channels || only_channels) odd = k, only_channels = channels;
  }
  return odd;
}

/// Where the nodes of a graph that are recorded so far end on the tape, and where its shared layers begin.
struct named_place {
  const char* identity = nullptr;
  int at = 0;
};
struct named_places {
  named_place* first;
  int count = 0;

  constexpr void add(const char* identity, int at) { first[count++] = {identity, at}; }
  /// -1: it is not there.
  constexpr int find(const char* identity) const {
    for (int k = 0; k < count; ++k)
      if (first[k].identity == identity) return first[k].at;
    return -1;
  }
};

/// Appends nodes and computes their shapes. After the first failure it only counts nodes.
struct recorder {
  tape_node* nodes;
  tape_failure* failed;
  int size = 0, layers = 0;
  item_path here = {};
  named_places* places = nullptr;  // of the graph that is recorded

  constexpr void enter(int level, int index) {
    if (level < item_path::max_depth) here.index[level] = index;
  }
  constexpr int add(const operation_info& operation, const layer_info& layer, std::span<const int> inputs) {
    const int id = size++;
    if (failed->happened()) return id;
    tape_node& n = nodes[id];
    n.operation = &operation;
    n.layer = &layer;
    n.layer_number = layers;
    shape in[max_inputs] = {};
    if (inputs.size() > std::size_t(max_inputs)) {
      *failed = {id, &reasons::a_join_takes_at_most_8_branches, nodes[inputs[0]].out, here, false};
      return id;
    }
    for (int i : inputs) {
      in[n.arity] = nodes[i].out;
      n.input[n.arity++] = i;
      ++nodes[i].consumers;
    }
    const int odd = odd_one_out(std::span<const shape>(in, std::size_t(n.arity)));
    const shape received = n.arity > 0 ? in[odd] : shape{};
    if (layer.misused) {
      *failed = {id, nullptr, received, here, true};
      return id;
    }
    const expected_shape out = operation.output_shape(std::span<const shape>(in, std::size_t(n.arity)));
    n.out = out.value;
    if (out.refused)
      *failed = {id, out.why, received, here, false, n.arity > 1 ? in[0] : out.value};
    else if (operation.traits.looks_up && !input_of_node(nodes, n.input[0]).exists())
      *failed = {id, &reasons::embedding_takes_the_row_indices_of_the_batch, received, here, false};
    return id;
  }
};

}  // namespace detail

namespace core {
/// The type of a node: its operation, and the layer that the user wrote for it.
template <class Operation, class Layer>
struct node_type {
  using operation = Operation;
  using layer = Layer;
};
}  // namespace core

namespace reasons {
inline constexpr reason items_of_a_network_are_layers{
    "an item of a network is a layer, a branch of layers, or a join of branches such as add or concat"};
inline constexpr reason layers_have_a_name{"a layer has a static member name"};
inline constexpr reason layers_have_operations_and_operations_have_output_shape{
    "a layer has operations, a type_list; an operation has output_shape(shape), which returns an expected_shape"};
inline constexpr reason input_stands_first_and_once{"input stands first, and only once"};
inline constexpr reason an_inner_network_receives_the_shape_of_its_input{
    "a network among the layers of another one receives the shape of its input: without input it takes any shape"};

inline constexpr reason on_device_takes_the_number_of_a_device_from_0_and_layers{
    "on_device takes the number of a device, from 0, and layers: on_device<0, dense<64, relu>>"};
}  // namespace reasons

template <class... Items>
struct sequential;

namespace detail {
template <class Item>
inline constexpr bool is_on = false;
template <int Index, class... Items>
inline constexpr bool is_on<on_device<Index, Items...>> = true;

/// The reason why an item is not a layer.
template <class Item>
constexpr const reason& why_no_layer() {
  if constexpr (!has_parameters_in_an_array<Item>)
    return reasons::operations_have_parameters_in_a_std_array;
  else if constexpr (named<Item>)
    return reasons::layers_have_operations_and_operations_have_output_shape;
  else if constexpr (requires { typename Item::operations; })
    return reasons::layers_have_a_name;
  else if constexpr (requires(shape in) { Item::output_shape(in); })
    return reasons::operations_have_a_name;
  else if constexpr (is_on<Item>)
    return reasons::on_device_takes_the_number_of_a_device_from_0_and_layers;
  else
    return reasons::items_of_a_network_are_layers;
}

/// The translation of an item of a network into nodes of the tape: `types`, a list of node_type, and `record`, which appends the
/// nodes in the same order.
template <class Item>
struct structure {
  using operation = refused<why_no_layer<Item>()>;
  using types = type_list<node_type<operation, Item>>;
  static constexpr int record(recorder& r, int in) {
    return r.add(info_of<operation>, info_of_layer<operation>, std::span<const int>(&in, 1));
  }
};

template <layer Layer>
struct structure<Layer> {
  template <class... Operation>
  static type_list<node_type<Operation, Layer>...> each(type_list<Operation...>);
  using types = decltype(each(operations_of<Layer>{}));

  static constexpr int record(recorder& r, int in) {
    const int out = [&]<class... Operation>(type_list<node_type<Operation, Layer>...>) {
      ((in = r.add(info_of<Operation>, info_of_layer<Layer>, std::span<const int>(&in, 1))), ...);
      return in;
    }(types{});
    ++r.layers;
    return out;
  }
};

template <int... Extents>
struct structure<input<Extents...>> {
  using types = type_list<node_type<input<Extents...>, input<Extents...>>>;
  static constexpr int record(recorder& r, int in) {
    if (r.size > 0)
      return r.add(info_of<refused<reasons::input_stands_first_and_once>>, info_of_layer<input<Extents...>>,
                   std::span<const int>(&in, 1));
    const int batch = r.add(info_of<input<Extents...>>, info_of_layer<input<Extents...>>, {});
    ++r.layers;
    return batch;
  }
};

using record_function = int (*)(recorder&, int);

/// Records a sequence of items. The first has index `First`.
template <int First, class... Items>
constexpr int record_row(recorder& r, int in) {
  constexpr record_function items[] = {&structure<Items>::record..., nullptr};
  const int level = r.here.depth++;
  for (int i = 0; i < int(sizeof...(Items)); ++i) {
    r.enter(level, First + i);
    in = items[i](r, in);
  }
  --r.here.depth;
  return in;
}

template <class... Items>
struct structure<branch<Items...>> {
  using types = join_t<typename structure<Items>::types...>;

  static constexpr int record(recorder& r, int in) { return record_row<0, Items...>(r, in); }
};

/// Nodes with other operations: Replacement<operation>::type instead of each.
template <template <class> class Replacement, class Nodes>
struct replaced_operations;
template <template <class> class Replacement, class... Node>
struct replaced_operations<Replacement, type_list<Node...>> {
  using types = type_list<node_type<typename Replacement<typename Node::operation>::type, typename Node::layer>...>;

  static constexpr void replace_in(tape_node* first) {
    constexpr const operation_info* infos[] = {&info_of<typename Replacement<typename Node::operation>::type>..., nullptr};
    for (int i = 0; i < int(sizeof...(Node)); ++i) first[i].operation = infos[i];
  }
};

template <class... Items>
struct structure<frozen<Items...>> {
  using replaced = replaced_operations<frozen_operation, join_t<typename structure<Items>::types...>>;
  using types = typename replaced::types;

  static constexpr int record(recorder& r, int in) {
    const int first = r.size;
    const int out = record_row<0, Items...>(r, in);
    if (r.failed->happened()) return out;
    replaced::replace_in(r.nodes + first);
    for (int i = first; i < r.size; ++i) r.nodes[i].frozen = true;
    return out;
  }
};

template <int Index, class... Items>
  requires(Index >= 0)
struct structure<on_device<Index, Items...>> {
  using types = join_t<typename structure<Items>::types...>;

  static constexpr int record(recorder& r, int in) {
    const int first = r.size;
    const int out = record_row<0, Items...>(r, in);
    for (int i = first; i < r.size && !r.failed->happened(); ++i)
      if (r.nodes[i].device < 0) r.nodes[i].device = Index;
    return out;
  }
};

/// A sequential inside a network: the sequence of its layers.
template <class... Items>
struct structure<sequential<Items...>> : structure<branch<Items...>> {};

/// A network inside a network: the shape that it receives must be that of its input.
template <int... Extents, class... Items>
struct structure<sequential<input<Extents...>, Items...>> {
  using types = typename structure<branch<Items...>>::types;

  static constexpr int record(recorder& r, int in) {
    if (!r.failed->happened() && r.nodes[in].out != shape{Extents...})
      *r.failed = {r.size,           &reasons::an_inner_network_receives_the_shape_of_its_input, r.nodes[in].out, r.here, false,
                   shape{Extents...}};
    return record_row<1, Items...>(r, in);
  }
};

template <class Layer, class Branches>
struct structure_of_join;
template <class Layer, class... Branches>
struct structure_of_join<Layer, type_list<Branches...>> {
  using join = typename Layer::join;
  using types = join_t<typename structure<Branches>::types..., type_list<node_type<join, Layer>>>;

  static constexpr int record(recorder& r, int in) {
    constexpr int count = sizeof...(Branches);
    constexpr record_function branches[] = {&structure<Branches>::record..., nullptr};
    int ends[count + 1] = {};
    const int level = r.here.depth++;
    for (int k = 0; k < count; ++k) {
      r.enter(level, k);
      ends[k] = branches[k](r, in);
    }
    --r.here.depth;
    const int out = r.add(info_of<join>, info_of_layer<Layer>, std::span<const int>(ends, count));
    if constexpr (requires { Layer::why(shape{}, shape{}); })
      if (r.failed->node == out) r.failed->why = &Layer::why(r.nodes[ends[0]].out, r.nodes[ends[count - 1]].out);
    ++r.layers;
    return out;
  }
};

template <class Layer, class Arguments>
struct branches_of {
  using type = Arguments;
};
template <class Layer, class Arguments>
  requires requires { typename Layer::branches; }
struct branches_of<Layer, Arguments> {
  using type = typename Layer::branches;
};

template <template <class...> class Join, class... Branches>
  requires join_layer<Join<Branches...>>
struct structure<Join<Branches...>>
    : structure_of_join<Join<Branches...>, typename branches_of<Join<Branches...>, type_list<Branches...>>::type> {};

template <class Items>
constexpr auto record() {
  tape<length(typename structure<Items>::types{})> t;
  recorder r{t.nodes, &t.failed};
  structure<Items>::record(r, 0);
  return t;
}

}  // namespace detail

namespace core {
/// A list of node_type, in the order of the tape.
template <class Items>
using node_types_of = typename detail::structure<Items>::types;

/// The tape of branch<items...>.
template <class Items>
inline constexpr auto tape_of = detail::record<Items>();
}  // namespace core

}  // namespace strata
