// The tape: a network as a flat constexpr array of nodes that name their inputs (SSA), beside a flat list of types.
// Types at both ends (layers in, kernels out), plain values in between: passes over the tape are ordinary functions.
#pragma once
#include <strata/concepts/layer.hpp>
#include <strata/layers/branches.hpp>
#include <strata/layers/input.hpp>

namespace strata {

inline constexpr int max_depth = 12;

/// Where an item stands: indices from the outside in, e.g. item 3, branch 1, item 0.
struct path {
  int index[max_depth] = {};
  int depth = 0;
};

/// One operation. Node 0 is the batch.
struct node {
  const operation_facts* operation = nullptr;
  const layer_facts* layer = nullptr;
  int layer_number = 0;  // nodes of one layer share it
  int input[max_inputs] = {};
  int arity = 0;
  int consumers = 0;
  shape out{};
};

/// The first item that cannot be: what it received and why it refused.
struct failure {
  int node = -1;
  const reason* why = nullptr;
  shape received{};
  path where;
  bool misused_option = false;
};

template <int N>
struct tape {
  static constexpr int size = N;
  node nodes[N];
  failure failed;

  constexpr bool well_shaped() const { return failed.node < 0; }
  constexpr shape in(int i, int k = 0) const { return nodes[nodes[i].input[k]].out; }
};

inline constexpr reason embedding_takes_the_numbers_of_the_batch{
    "embedding takes the numbers of the batch: only flatten and reshape may stand between it and input"};

/// Appends nodes and computes their shapes; after the first failure it only counts.
struct recorder {
  node* nodes;
  failure* failed;
  int size = 0, layers = 0;
  path here = {};

  constexpr void enter(int level, int index) {
    if (level < max_depth) here.index[level] = index;
  }
  constexpr int add(const operation_facts& operation, const layer_facts& layer, std::span<const int> inputs) {
    const int id = size++;
    if (failed->node >= 0) return id;
    node& n = nodes[id];
    n.operation = &operation;
    n.layer = &layer;
    n.layer_number = layers;
    shape in[max_inputs] = {};
    for (int i : inputs) {
      in[n.arity] = nodes[i].out;
      n.input[n.arity++] = i;
      ++nodes[i].consumers;
    }
    const shape received = n.arity > 0 ? in[n.arity - 1] : shape{};
    if (layer.misused) {
      *failed = {id, nullptr, received, here, true};
      return id;
    }
    const expected_shape out = operation.output_shape(std::span<const shape>(in, std::size_t(n.arity)));
    n.out = out.value;
    if (out.refused)
      *failed = {id, out.why, received, here, false};
    else if (operation.looks_up && !is_batch(n.input[0]))
      *failed = {id, &embedding_takes_the_numbers_of_the_batch, received, here, false};
    return id;
  }

 private:
  /// The batch, or a view of it.
  constexpr bool is_batch(int id) const {
    while (id > 0 && nodes[id].operation->is_view) id = nodes[id].input[0];
    return id == 0;
  }
};

/// An operation and the layer that the user wrote for it.
template <class Operation, class Layer>
struct leaf {
  using operation = Operation;
  using layer = Layer;
};

inline constexpr reason items_of_a_network_are_layers{"an item of a network is a layer, or add / concat / residual / branch of layers"};
inline constexpr reason input_stands_first_and_once{"input stands first, and only once"};

namespace detail {
template <const reason& Why>
struct refused_operation {
  static constexpr auto name = "refused";
  static constexpr expected_shape output_shape(shape) { return Why; }
};
}  // namespace detail

/// How an item of a network becomes a piece of tape: its leaves (types) and its nodes (values), in the same order.
template <class Item>
struct structure {
  using refused = detail::refused_operation<items_of_a_network_are_layers>;
  using leaves = list<leaf<refused, Item>>;
  static constexpr int record(recorder& r, int in) {
    return r.add(facts_of<refused>, facts_of_layer<refused>, std::span<const int>(&in, 1));
  }
};

template <layer Layer>
struct structure<Layer> {
  template <class... Operation>
  static list<leaf<Operation, Layer>...> each(list<Operation...>);
  using leaves = decltype(each(operations_of<Layer>{}));

  static constexpr int record(recorder& r, int in) {
    const int out = [&]<class... Operation>(list<leaf<Operation, Layer>...>) {
      ((in = r.add(facts_of<Operation>, facts_of_layer<Layer>, std::span<const int>(&in, 1))), ...);
      return in;
    }(leaves{});
    ++r.layers;
    return out;
  }
};

template <int... Extents>
struct structure<input<Extents...>> {
  using leaves = list<leaf<input<Extents...>, input<Extents...>>>;
  static constexpr int record(recorder& r, int in) {
    if (r.size > 0)
      return r.add(facts_of<detail::refused_operation<input_stands_first_and_once>>, facts_of_layer<input<Extents...>>,
                   std::span<const int>(&in, 1));
    const int batch = r.add(facts_of<input<Extents...>>, facts_of_layer<input<Extents...>>, {});
    ++r.layers;
    return batch;
  }
};

using record_function = int (*)(recorder&, int);

template <class... Items>
struct structure<branch<Items...>> {
  using leaves = join_t<typename structure<Items>::leaves...>;

  static constexpr int record(recorder& r, int in) {
    constexpr record_function items[] = {&structure<Items>::record..., nullptr};
    const int level = r.here.depth++;
    for (int i = 0; i < int(sizeof...(Items)); ++i) {
      r.enter(level, i);
      in = items[i](r, in);
    }
    --r.here.depth;
    return in;
  }
};

namespace detail {
template <class Layer, class... Branches>
struct structure_of_join {
  static_assert(sizeof...(Branches) >= 1 && sizeof...(Branches) <= max_inputs, "add and concat take 1 to 8 branches");
  using join = typename Layer::join;
  using leaves = join_t<typename structure<Branches>::leaves..., list<leaf<join, Layer>>>;

  static constexpr int record(recorder& r, int in) {
    constexpr record_function branches[] = {&structure<Branches>::record...};
    int ends[sizeof...(Branches)] = {}, n = 0;
    const int level = r.here.depth++;
    for (record_function each : branches) {
      r.enter(level, n);
      ends[n++] = each(r, in);
    }
    --r.here.depth;
    const int out = r.add(facts_of<join>, facts_of_layer<Layer>, ends);
    ++r.layers;
    return out;
  }
};
}  // namespace detail

template <class... Branches>
struct structure<add<Branches...>> : detail::structure_of_join<add<Branches...>, Branches...> {};
template <class... Branches>
struct structure<concat<Branches...>> : detail::structure_of_join<concat<Branches...>, Branches...> {};

template <class Items>
using leaves_of = typename structure<Items>::leaves;

template <class Items>
constexpr auto record() {
  tape<length(leaves_of<Items>{})> t;
  recorder r{t.nodes, &t.failed};
  structure<Items>::record(r, 0);
  return t;
}

template <class Items>
inline constexpr auto tape_of = record<Items>();

}  // namespace strata
