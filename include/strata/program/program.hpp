// program<...>: the whole training program as one type. It is what a strategy receives.
#pragma once
#include <strata/base/precision.hpp>
#include <strata/concepts/loss.hpp>
#include <strata/concepts/metric.hpp>
#include <strata/network/layout.hpp>
#include <type_traits>

namespace strata {

namespace core {
/// The loss of one output of a network, and the metrics that are reported for it. Metrics: type_list<...>.
template <loss_function Loss, class Metrics>
struct compared_output {
  using loss = Loss;
  using metrics = Metrics;
};

/// Metrics: type_list<...>.
template <network Network, class Loss, class Optimizer, class Metrics, precision_policy Precision = precision::f32>
struct program {
  using network = Network;
  using loss = std::conditional_t<loss_function<Loss>, Loss, detail::stand_in_loss<Loss>>;
  using loss_verdict = detail::loss_verdict<Loss>;  // the trainer emits its diagnostic
  using optimizer = Optimizer;
  using metrics = Metrics;
  using precision = Precision;
  using value_type = typename Precision::value_type;

  /// A loss is one more item, right after the output that it reads.
  using items = branch<typename Network::items, loss>;
  /// One for each loss of the tape, in its order.
  using outputs = type_list<compared_output<loss, Metrics>>;
};
}  // namespace core

namespace detail {
template <class... Output>
join_t<typename Output::metrics...> metrics_of(type_list<Output...>);

template <int N>
constexpr end_sizes sizes_of_ends(const tape<N>& t) {
  const tape_ends ends = ends_of(t);
  end_sizes sizes{.input_count = ends.input_count, .output_count = ends.output_count};
  for (int k = 0; k < ends.input_count; ++k) sizes.inputs[k] = t.nodes[ends.inputs[k]].out.size();
  for (int k = 0; k < ends.output_count; ++k) sizes.outputs[k] = t.nodes[ends.losses[k]].out.size();
  return sizes;
}
}  // namespace detail

namespace core {
/// The sizes, for each input and each output of the network, of a sample in a batch.
template <class Program>
inline constexpr end_sizes ends_of_program = detail::sizes_of_ends(tape_of<typename Program::items>);

/// The metrics of all outputs, one after the other.
template <class Program>
using metrics_of_program = decltype(detail::metrics_of(typename Program::outputs{}));
}  // namespace core

namespace detail {
template <class Network>
struct whole_network {
  using type = Network;
};
template <class Network>
  requires requires { typename Network::whole; }
struct whole_network<Network> {
  using type = typename Network::whole;
};
}  // namespace detail

namespace core {
/// The network of which a network is the part of one rank; else itself. What decides about bits follows from it.
template <class Network>
using whole_network_of = typename detail::whole_network<Network>::type;

/// The layout that a step needs of the program, without its types: a constant.
template <class Program>
inline constexpr const auto& layout_of_program = layout_of<typename Program::network::items>;
}  // namespace core

}  // namespace strata
