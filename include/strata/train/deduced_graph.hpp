// The program deduced from trainer{graph<...>{}, optimizer, compare<node>(...)...}, or the diagnostic for wrong arguments.
#pragma once
#include <concepts>
#include <strata/base/node_name.hpp>
#include <strata/base/refused_arguments.hpp>
#include <strata/network/graph.hpp>
#include <strata/program/program_of_graph.hpp>
#include <strata/train/deduced_program.hpp>
#include <string_view>
#include <type_traits>

namespace strata {

namespace core {
// The words of the diagnostics. None is ever defined.
template <class Node, class Why>
struct output_without_loss;
template <class Node, class Why>
struct no_output;
template <class Node, class Why>
struct compared_twice;
}  // namespace core

namespace reasons {
inline constexpr reason an_output_of_a_graph_is_compared_such_as_compare_kind_of_a_loss{
    "a graph is trained by comparing one of its outputs, or several: compare<kind>(sparse_categorical_crossentropy{}, "
    "accuracy{})"};
inline constexpr reason compare_names_an_output_of_the_graph{"compare names an output of the graph: one of its arguments"};
inline constexpr reason a_loss_weight_is_that_of_an_output_with_a_loss{
    "set_loss_weight and loss_weight_of name an output of the graph that is compared"};
inline constexpr reason an_output_has_one_loss_and_several_metrics{
    "an output has one loss, and several metrics in the same compare"};
inline constexpr reason compare_belongs_to_a_graph_a_sequential_takes_a_loss_and_metrics{
    "compare belongs to a graph: a sequential takes a loss and metrics"};
inline constexpr reason compare_takes_a_loss_first_such_as_mean_squared_error{
    "compare takes a loss first: compare<box>(mean_squared_error{}, mean_absolute_error{}, loss_weight(0.2))"};
inline constexpr reason losses_and_metrics_of_a_graph_stand_in_the_compare_of_an_output{
    "losses and metrics of a graph stand in the compare of an output: compare<kind>(sparse_categorical_crossentropy{}, "
    "accuracy{})"};
inline constexpr reason this_strategy_trains_a_graph_only_with_one_input_one_output_and_no_compare{
    "this strategy trains a graph only with one input, one output and no compare; one_device and mirrored train every graph"};
inline constexpr reason an_output_is_not_named_val_which_names_values_of_the_validation;
}  // namespace reasons

namespace detail {
template <class T>
struct is_compared : std::bool_constant<is_comparison<T>> {};
template <class T>
struct is_not_compared : std::bool_constant<!is_comparison<T>> {};

/// Whether the arguments of a trainer are those of a graph.
template <class Network, class... Arguments>
concept arguments_of_graph = graph_of_several_ends<Network> || (is_comparison<Arguments> || ...);

/// The diagnostic about what stands first in a comparison and is no loss.
template <class Loss>
auto verdict_on_compared_loss() {
  if constexpr (meant_as_a_loss<Loss>)
    return loss_verdict<Loss>{};
  else
    return std::type_identity<wrong_argument<Loss, because<reasons::compare_takes_a_loss_first_such_as_mean_squared_error>>>{};
}

/// The diagnostic about one comparison: void if nothing is wrong.
template <class Compared, class Outputs>
struct sentence_on_comparison;
template <class Node, class Loss, class... M, class... Output>
struct sentence_on_comparison<comparison<Node, Loss, type_list<M...>>, type_list<Output...>> {
  static auto find() {
    if constexpr (times_among<Node, Output...> == 0)
      return std::type_identity<no_output<Node, because<reasons::compare_names_an_output_of_the_graph>>>{};
    else if constexpr (node_name<Node> == "val")
      return std::type_identity<
          wrong_node<Node, because<reasons::an_output_is_not_named_val_which_names_values_of_the_validation>>>{};
    else if constexpr (!loss_function<Loss>)
      return verdict_on_compared_loss<Loss>();
    else
      return metric_verdict<Loss::labels, decltype(metrics_unfit_for<Loss::labels>(type_list<M...>{}))>{};
  }
  using type = typename decltype(find())::type;
};

/// The diagnostic about network, optimizer and comparisons: void if nothing is wrong.
template <class Network, class Optimizer, class... Node, class... Loss, class... Metrics>
auto sentence_on_graph(type_list<comparison<Node, Loss, Metrics>...>) {
  if constexpr (ill_shaped_network<Network>) {
    return std::type_identity<no_complaint>{};
  } else if constexpr (!is_graph<Network>) {
    return std::type_identity<
        wrong_argument<Network, because<reasons::compare_belongs_to_a_graph_a_sequential_takes_a_loss_and_metrics>>>{};
  } else if constexpr (!std::is_void_v<typename decltype(sentence_on_optimizer<Optimizer>())::type>) {
    return sentence_on_optimizer<Optimizer>();
  } else {
    return []<class... Output>(type_list<Output...> outputs) {
      using wrong = first_complaint<typename sentence_on_comparison<comparison<Node, Loss, Metrics>, decltype(outputs)>::type...>;
      constexpr int twice = first_false({(times_among<Output, Node...> < 2)..., true});
      if constexpr (!std::is_same_v<wrong, no_complaint>)
        return std::type_identity<wrong>{};
      else if constexpr (twice >= 0)
        return std::type_identity<
            compared_twice<at_t<twice, type_list<Output...>>, because<reasons::an_output_has_one_loss_and_several_metrics>>>{};
      else if constexpr (sizeof...(Node) == 0)
        return std::type_identity<output_without_loss<
            at_t<0, type_list<Output...>>, because<reasons::an_output_of_a_graph_is_compared_such_as_compare_kind_of_a_loss>>>{};
      else
        return std::type_identity<void>{};
    }(typename Network::outputs{});
  }
}

/// The diagnostic about the metrics of each output for its number of predictions.
template <class Program, class... Output, int... K>
auto refusals_of_metrics(type_list<Output...>, std::integer_sequence<int, K...>) -> first_complaint<typename metric_refusal<
    int(ends_of_program<Program>.outputs[K]),
    decltype(metrics_refused_for<int(ends_of_program<Program>.outputs[K])>(typename Output::metrics{}))>::type...>;
template <class Program>
using refusal_of_metrics = decltype(refusals_of_metrics<Program>(
    typename Program::outputs{}, std::make_integer_sequence<int, length(typename Program::outputs{})>{}));

template <class Outputs>
struct losses_of_outputs;
template <class... Output>
struct losses_of_outputs<type_list<Output...>> {
  using type = type_list<typename Output::loss...>;
};

template <class T>
struct is_misplaced_in_graph : std::bool_constant<metric<T> || meant_as_a_loss<T>> {};

/// The diagnostic about the whole program of a graph.
template <class Program, class Strategy, class... Extra>
auto sentence_on_program_of_graph() {
  using misplaced = filter_t<is_misplaced_in_graph, Extra...>;
  using refused = filter_t<is_no_trainer_extra, Extra...>;
  if constexpr (std::is_base_of_v<refused_strategy, Strategy>)
    return std::type_identity<told>{};
  else if constexpr (!std::is_same_v<misplaced, type_list<>>)
    return argument_verdict<misplaced, reasons::losses_and_metrics_of_a_graph_stand_in_the_compare_of_an_output>{};
  else if constexpr (!std::is_same_v<refused, type_list<>>)
    return extra_verdict<refused>{};
  else if constexpr (!requires { requires Strategy::trains_graphs; })
    return std::type_identity<
        wrong_argument<Strategy, because<reasons::this_strategy_trains_a_graph_only_with_one_input_one_output_and_no_compare>>>{};
  else if constexpr (!tape_of<typename Program::items>.well_shaped())
    return verdict<typename Program::items>{};
  else if constexpr (!std::is_same_v<refusal_of_metrics<Program>, no_complaint>)
    return std::type_identity<refusal_of_metrics<Program>>{};
  else
    return sentence_on_machine<Program, Strategy, typename losses_of_outputs<typename Program::outputs>::type>();
}

template <class Compared>
struct values_of_comparison;
template <class Node, class Loss, class... M>
struct values_of_comparison<comparison<Node, Loss, type_list<M...>>> : std::integral_constant<int, 1 + sizeof...(M)> {};
template <class... Compared>
constexpr int values_of_comparisons(type_list<Compared...>) {
  constexpr int all = (values_of_comparison<Compared>::value + ... + 0);
  return sizeof...(Compared) > 1 ? 1 + all : all;
}

template <class Network, class Optimizer, class Loss, class... Extra>
  requires arguments_of_graph<Network, Optimizer, Loss, Extra...>
struct deduced_program<Network, Optimizer, Loss, Extra...> {
 private:
  using compared = filter_t<is_compared, Loss, Extra...>;
  template <class... Other>
  static sorted_extras<Other...> sorted(type_list<Other...>);
  template <class Program, class... Other>
  static auto on_whole(type_list<Other...>) {
    return sentence_on_program_of_graph<Program, typename sorted_extras<Other...>::strategy, Other...>();
  }
  using others = filter_t<is_not_compared, Loss, Extra...>;
  using extras = decltype(sorted(others{}));
  template <class Graph, class... Comparison>
  static typename in_order_of_nodes<typename Graph::nodes, Comparison...>::type ordered(type_list<Comparison...>);
  template <class Graph, class... Comparison>
  static auto of_all_outputs(type_list<Comparison...> given) -> decltype(ordered<Graph>(
      join_t<decltype(given), decltype(not_compared(type_list<typename Comparison::node...>{}, typename Graph::outputs{}))>{}));

  static auto find() {
    using first = typename decltype(sentence_on_graph<Network, Optimizer>(compared{}))::type;
    constexpr int values = values_of_comparisons(compared{});
    if constexpr (!std::is_void_v<first>) {
      return std::type_identity<refused_program<first, Network, values>>{};
    } else {
      using whole =
          program_of_graph<Network, Optimizer, typename extras::precision, decltype(of_all_outputs<Network>(compared{}))>;
      using second = typename decltype(on_whole<whole>(others{}))::type;
      return std::type_identity<std::conditional_t<std::is_void_v<second>, whole, refused_program<second, Network, values>>>{};
    }
  }
  template <class Program>
  static typename extras::strategy strategy_for(Program*);
  template <class Sentence, int Values>
  static void strategy_for(refused_program<Sentence, Network, Values>*);

 public:
  using program = typename decltype(find())::type;
  using strategy = decltype(strategy_for(static_cast<program*>(nullptr)));
};
}  // namespace detail

}  // namespace strata
