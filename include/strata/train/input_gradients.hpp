// Gradients with respect to the inputs of a network: trainer::gradients and predictor::gradients.
#pragma once
#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <strata/base/arena.hpp>
#include <strata/base/error.hpp>
#include <strata/base/node_name.hpp>
#include <strata/base/reused_objects.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/network/equal_nodes.hpp>
#include <strata/network/range_of_predictions.hpp>
#include <strata/program/input_gradient_program.hpp>
#include <strata/program/program_of_graph.hpp>
#include <strata/train/checks.hpp>
#include <strata/train/columns_verdict.hpp>
#include <strata/train/deduced_graph.hpp>
#include <strata/train/loss_weights.hpp>
#include <strata/train/output_weights.hpp>
#include <strata/train/predicted_graph.hpp>
#include <strata/train/predictions.hpp>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace strata {

namespace core {
// The words of the diagnostics. None is ever defined.
template <class Node, class Why>
struct no_input;
}  // namespace core

namespace reasons {
inline constexpr reason gradients_name_inputs_of_the_graph_such_as_gradients_of_image{
    "gradients are those of inputs of the graph, which are named: gradients<image>(of<image>(pixels), ...)"};
inline constexpr reason gradients_have_a_span_for_each_input_or_none{
    "gradients are stored in a span for each input that is named, or returned if there is no span"};
inline constexpr reason gradients_name_each_input_once{"gradients name each input once"};
inline constexpr reason an_embedding_looks_up_rows_so_that_its_input_has_no_gradient{
    "an embedding looks up rows, so the indices that it reads have no gradient"};
inline constexpr reason gradients_take_x_and_y_then_perhaps_a_loss_and_a_span_for_the_result{
    "gradients take x and y, then perhaps a loss, and a span for the result: gradients(x, y, mean_squared_error{}, result)"};
inline constexpr reason gradients_of_a_predictor_take_a_loss_such_as_given_gradient{
    "a predictor has no loss: gradients(x, y, mean_squared_error{}), or gradients(x, of_the_outputs, given_gradient{})"};
inline constexpr reason gradients_of_a_graph_take_columns_comparisons_and_spans{
    "gradients of a graph take columns, comparisons such as compare<kind>(given_gradient{}), and spans for the results"};
inline constexpr reason gradients_of_a_predictor_of_a_graph_take_a_comparison{
    "a predictor of a graph has no loss: gradients<image>(..., compare<kind>(sparse_categorical_crossentropy{}))"};
inline constexpr reason gradients_compare_nodes_of_the_graph_each_once{
    "the comparisons of gradients name nodes of the graph, each of them once"};
}  // namespace reasons

namespace detail {

/// The optimizer of a program that computes gradients of inputs only.
struct no_updates {};

/// The weights of a trainer or a predictor of `Network`.
template <class Network, class T>
struct weights_of_call {
  std::span<const T> values;
  std::shared_ptr<const void> version;  // equal weights have an equal one; null: they may have changed
  std::span<const double> factors;      // of the losses of a trainer, in the order of the tape
  reused_objects& engines;
  int threads;  // 0: all cores
};

/// The engine of a call, its copy of the weights and the weights of its losses.
template <class Program>
class gradient_work {
  using T = typename Program::value_type;
  input_gradient_engine<Program> engine_;
  std::shared_ptr<const void> version_;
  arena<T> weights_;
  std::vector<T> factors_[max_ends];

 public:
  explicit gradient_work(int threads) : engine_(threads) {}

  template <class Network>
  void use(const weights_of_call<Network, T>& from) {
    if (from.version && version_ == from.version) return;
    version_ = nullptr;
    if constexpr (std::is_same_v<Network, typename Program::network>) {
      if (!from.version) return engine_.use_weights(from.values.data());  // an arena
      weights_.grow(from.values.size());
      std::ranges::copy(from.values, weights_.data());
    } else {
      weights_.grow(std::size_t(layout_of_program<Program>.size));
      copy_weights_of_equal_nodes<Network, typename Program::network>(from.values, weights_.span());
    }
    engine_.use_weights(weights_.data());
    version_ = from.version;
  }
  /// factors: of the losses, in the order of the tape.
  void compute(samples<T> batch, std::span<const double> factors, T* const* to) {
    for (std::size_t k = 0; k < factors.size(); ++k)
      if (factors[k] != 1) batch.truths[k].weights = weights_times(factors[k], batch.truths[k].weights, batch.count, factors_[k]);
    engine_.compute(batch, to);
  }
};

/// The truth of a call at one output, without a copy where the array has the numbers that the loss reads.
template <class Loss, class T, shape S>
class truth_of_call {
  std::vector<std::int32_t> copied_;
  std::span<const std::int32_t> labels_;

 public:
  template <class A>
  truth_of_call(const char*, std::string_view, const A& a) {
    const auto elements = [&]() -> decltype(auto) {
      if constexpr (data::detail::row_array<A>)
        return a.values();
      else
        return (a);
    };
    if constexpr (std::same_as<typename array_traits<A>::value_type, std::int32_t>) {
      labels_ = elements();
    } else {
      const data::sparse_labels labels(elements());  // which refuses numbers beyond 32 bits
      copied_.assign(labels.values().begin(), labels.values().end());
      labels_ = copied_;
    }
  }
  truth_of_call(const truth_of_call&) = delete;
  truth_of_call& operator=(const truth_of_call&) = delete;

  std::size_t size() const { return labels_.size(); }
  void give(truth_rows<T>& to) const { to.labels = labels_.data(); }
};
template <class Loss, class T, shape S>
  requires(Loss::labels == label_kind::dense)
class truth_of_call<Loss, T, S> {
  values_of_array<T, S> targets_;

 public:
  template <class A>
  truth_of_call(const char* call, std::string_view name, const A& a) : targets_(rows_of_array<S>(call, name, a)) {}

  std::size_t size() const { return targets_.values().size() / std::size_t(S.size()); }
  void give(truth_rows<T>& to) const { to.targets = targets_.values().data(); }
};

/// A column of a call, for an output or an input.
template <class Program, class Node, int Output = index_in<Node>(typename Program::output_nodes{})>
class column_of_call {
  using T = typename Program::value_type;
  truth_of_call<typename at_t<Output, typename Program::outputs>::loss, T, shape_of_end<Program, Node>> truth_;

 public:
  explicit column_of_call(const auto& given) : truth_("gradients", node_name<Node>, given.values) {}
  void add_to(samples<T>& all, std::string_view& first) const {
    set_count(all, first, "gradients", node_name<Node>, truth_.size());
    truth_.give(all.truths[Output]);
  }
};
template <class Program, class Node>
class column_of_call<Program, Node, -1> : column_to_predict<Program, Node> {
  using base = column_to_predict<Program, Node>;

 public:
  explicit column_of_call(const auto& given) : base(given, "gradients") {}
  void add_to(auto& all, std::string_view& first) const { base::add_to(all, first, "gradients"); }
};

template <class Program, class Node>
class column_of_call<Program, weights_at<Node>, -1> {
  using T = typename Program::value_type;
  values_of_array<T, shape{1}> weights_;

 public:
  explicit column_of_call(const auto& given) : weights_(column_of_rows<Program>("gradients", given).values) {}
  void add_to(samples<T>& all, std::string_view& first) const {
    set_count(all, first, "gradients", node_name<weights_at<Node>>, weights_.values().size());
    all.truths[index_in<Node>(typename Program::output_nodes{})].weights = weights_.values().data();
  }
};

/// The inputs of a program that an embedding reads, a bit for each.
template <class Program>
inline constexpr unsigned looked_up_inputs = [] {
  constexpr const auto& t = tape_of<typename Program::items>;
  unsigned inputs = 0;
  for (int i = 0; i < t.size; ++i)
    if (t.nodes[i].operation->traits.looks_up) inputs |= 1u << input_of_node(t.nodes, t.nodes[i].input[0]).input;
  return inputs;
}();

/// The diagnostic about the items of a program, its losses, its data and its kernels.
template <class Program, unsigned Inputs, class Given, class... Loss>
auto sentence_on_gradients() {
  if constexpr (!tape_of<typename Program::items>.well_shaped()) {
    return verdict<typename Program::items>{};
  } else if constexpr (range_verdict<typename Program::items, type_list<Loss...>>::found.last > 0) {
    return range_verdict<typename Program::items, type_list<Loss...>>{};
  } else if constexpr (!std::is_same_v<typename data_verdict<Program, Given, true>::type, no_complaint>) {
    return data_verdict<Program, Given, true>{};
  } else {
    using program = input_gradient_program<Program, Inputs>;
    return kernel_verdict<program, cpu, first_without_kernel<program, cpu>>{};
  }
}

/// The memory for the gradients of `count` samples. Throws strata_error if a span has another size.
template <class T>
T* checked_result(std::span<T> to, std::string_view name, int count, long size) {
  if (to.size() != std::size_t(count) * std::size_t(size))
    throw_error({"gradients: the span for ", name, " has ", to.size(), " elements, but ", count, " samples need ",
                 std::size_t(count) * std::size_t(size)});
  return to.data();
}
template <class T, shape S>
T* resized_result(predictions<T, S>& out, int count) {
  out.values.resize(std::size_t(count) * std::size_t(S.size()));
  return out.values.data();
}

/// factors: of the losses, in the order of the tape. to: of each wanted input.
template <class Program, unsigned Inputs, class Network, class T>
void compute_gradients(const weights_of_call<Network, T>& weights, const samples<T>& batch, std::span<const double> factors,
                       T* const* to) {
  if (batch.count == 0) return;
  check_rows<Program>(batch, {0, batch.count}, sample_names());
  const auto work = weights.engines.template borrow<gradient_work<input_gradient_program<Program, Inputs>>>(weights.threads);
  work->use(weights);
  work->compute(batch, factors, to);
}

template <class Argument, class T>
concept result_span = std::convertible_to<Argument, std::span<T>>;
template <class T>
struct is_loss_of_call : std::bool_constant<loss_function<T> || meant_as_a_loss<T>> {};

/// gradients(x, y, loss, span) of a network of one input and one output. OwnLoss: that of a trainer, or void.
template <class Network, class Precision, class OwnLoss>
struct gradients_of_network {
  using T = typename Precision::value_type;
  using result = predictions<T, Network::input_shape>;
  template <class Loss>
  using program_with = program<Network, Loss, no_updates, type_list<>, Precision>;
  template <class Argument>
  struct is_result_span : std::bool_constant<result_span<Argument, T>> {};
  template <class... More>
  using losses_among = filter_t<is_loss_of_call, std::remove_cvref_t<More>...>;
  template <class... More>
  using loss_of = at_t<0, join_t<losses_among<More...>, type_list<OwnLoss>>>;

  template <class Loss, class X, class Y>
  static auto sentence_with() {
    if constexpr (std::is_void_v<Loss>)
      return std::type_identity<
          wrong_argument<type_list<X, Y>, because<reasons::gradients_of_a_predictor_take_a_loss_such_as_given_gradient>>>{};
    else if constexpr (!loss_function<Loss>)
      return loss_verdict<Loss>{};
    else if constexpr (looked_up_inputs<program_with<Loss>> != 0)
      return std::type_identity<
          wrong_argument<Network, because<reasons::an_embedding_looks_up_rows_so_that_its_input_has_no_gradient>>>{};
    else
      return sentence_on_gradients<program_with<Loss>, 1, given_arrays<X, Y>, Loss>();
  }
  /// Argument: with its reference.
  template <class... Argument>
  static auto sentence(type_list<Argument...>) {
    using wrong = std::type_identity<
        wrong_argument<type_list<std::remove_cvref_t<Argument>...>,
                       because<reasons::gradients_take_x_and_y_then_perhaps_a_loss_and_a_span_for_the_result>>>;
    return wrong{};
  }
  template <class X, class Y, class... More>
    requires(length(losses_among<More...>{}) < 2 && length(filter_t<is_result_span, More...>{}) < 2 &&
             length(losses_among<More...>{}) + length(filter_t<is_result_span, More...>{}) == sizeof...(More))
  static auto sentence(type_list<X, Y, More...>) {
    return sentence_with<loss_of<More...>, std::remove_cvref_t<X>, std::remove_cvref_t<Y>>();
  }

  template <class X, class Y, class... More>
  static auto call(const weights_of_call<Network, T>& weights, const X& x, const Y& y, More&... more) {
    using loss = loss_of<More...>;
    constexpr shape in = Network::input_shape;
    const values_of_array<T, in> inputs(rows_of_array<in>("gradients", "x", x));
    const truth_of_call<loss, T, Network::output_shape> truth("gradients", "y", y);
    samples<T> batch(inputs.values().data(), int(inputs.values().size() / std::size_t(in.size())));
    std::string_view first = "x";
    set_count(batch, first, "gradients", "y", truth.size());
    truth.give(batch.truths[0]);
    result out;
    T* to = nullptr;
    [[maybe_unused]] const auto store = [&](auto& one) {
      if constexpr (result_span<decltype(one), T>) to = checked_result(std::span<T>(one), "x", batch.count, in.size());
    };
    (store(more), ...);
    constexpr bool returns = !(result_span<More&, T> || ...);
    if constexpr (returns) to = resized_result(out, batch.count);
    constexpr bool is_own = std::is_same_v<losses_among<More...>, type_list<>>;
    compute_gradients<program_with<loss>, 1>(weights, batch, is_own ? weights.factors : std::span<const double>(), &to);
    if constexpr (returns) return out;
  }
};

template <class... Node, class... Loss, class... Metrics>
type_list<Node...> nodes_of_comparisons(type_list<comparison<Node, Loss, Metrics>...>);
template <class... Node, class... Loss, class... Metrics>
type_list<Loss...> losses_of_comparisons(type_list<comparison<Node, Loss, Metrics>...>);

/// The graph of a call: that of the model with its own comparisons, or of the nodes that the call compares.
template <class Network, class Own, class Given>
struct compared_graph {
  using network = Network;
  using comparisons = Own;
};
template <class Network, class Own, class First, class... More>
struct compared_graph<Network, Own, type_list<First, More...>> {
  template <class... Node>
  static graph<Node...> graph_of(type_list<Node...>);
  using network = decltype(graph_of(decltype(nodes_of_comparisons(type_list<First, More...>{})){}));
  using comparisons = typename in_order_of_nodes<typename network::nodes, First, More...>::type;
};

template <int... Extents>
constexpr shape extents_of_input(const input<Extents...>*) {
  return {Extents...};
}
constexpr shape extents_of_input(const void*) { return {}; }
template <class T, class... Wanted>
struct gradients_by_input {
  using type = std::tuple<predictions<T, extents_of_input(static_cast<const Wanted*>(nullptr))>...>;
};
template <class T>
struct gradients_by_input<T> {
  using type = predictions<T, shape{}>;
};
template <class T, class Wanted>
struct gradients_by_input<T, Wanted> {
  using type = predictions<T, extents_of_input(static_cast<const Wanted*>(nullptr))>;
};

/// gradients<inputs...>(columns, comparisons, spans) of a graph. Own: the comparisons of a trainer in the order of the tape, or
/// an empty list.
template <class Network, class Precision, class Own, class... Wanted>
struct gradients_of_graph {
  using T = typename Precision::value_type;
  using result = typename gradients_by_input<T, Wanted...>::type;
  template <class... Argument>
  using given_in = filter_t<is_compared, std::remove_cvref_t<Argument>...>;
  template <class... Argument>
  using compared_in = compared_graph<Network, Own, given_in<Argument...>>;
  template <class Compared>
  using program_of = program_of_graph<typename Compared::network, no_updates, Precision, typename Compared::comparisons>;
  template <class Argument>
  struct is_result_span : std::bool_constant<result_span<Argument, T>> {};
  template <class Argument>
  struct is_of_columns : std::bool_constant<is_column<std::remove_cvref_t<Argument>>> {};
  template <class Argument>
  struct is_other : std::bool_constant<!is_column<std::remove_cvref_t<Argument>> &&
                                       !is_comparison<std::remove_cvref_t<Argument>> && !result_span<Argument, T>> {};

  template <class... Node>
  static constexpr bool may_be_compared(type_list<Node...>) {
    return ((graph_node<Node> && !is_nameless_node<Node>) && ...) && are_distinct<Node...>;
  }
  template <class... Loss>
  static auto sentence_on_losses(type_list<Loss...>) {
    constexpr int wrong = first_false({loss_function<Loss>..., true});
    if constexpr (wrong >= 0)
      return verdict_on_compared_loss<at_t<wrong, type_list<Loss..., void>>>();
    else
      return std::type_identity<no_complaint>{};
  }
  template <class Program, class... Column, class... Loss>
  static auto sentence_on_program(type_list<Column...>, type_list<Loss...>) {
    using inputs = typename Program::network::inputs;
    constexpr int other = first_false({(index_in<Wanted>(inputs{}) >= 0)..., true}),
                  looked_up =
                      first_false({!(looked_up_inputs<Program> >> std::max(0, index_in<Wanted>(inputs{})) & 1u)..., true});
    if constexpr (other >= 0)
      return std::type_identity<no_input<at_t<other, type_list<Wanted...>>,
                                         because<reasons::gradients_name_inputs_of_the_graph_such_as_gradients_of_image>>>{};
    else if constexpr (looked_up >= 0)
      return std::type_identity<wrong_argument<at_t<looked_up, type_list<Wanted...>>,
                                               because<reasons::an_embedding_looks_up_rows_so_that_its_input_has_no_gradient>>>{};
    else
      return sentence_on_gradients<Program, mask_of<Program>, given_columns<std::remove_cvref_t<Column>...>, Loss...>();
  }
  template <class Program>
  static constexpr unsigned mask_of = ((1u << std::max(0, index_in<Wanted>(typename Program::network::inputs{}))) | ...);

  /// Argument: with its reference.
  template <class... Argument>
  static auto sentence(type_list<Argument...>) {
    using given = given_in<Argument...>;
    using others = filter_t<is_other, Argument...>;
    using on_losses = decltype(sentence_on_losses(decltype(losses_of_comparisons(given{})){}));
    constexpr int spans = length(filter_t<is_result_span, Argument...>{});
    if constexpr (sizeof...(Wanted) == 0)
      return std::type_identity<
          no_input<nothing, because<reasons::gradients_name_inputs_of_the_graph_such_as_gradients_of_image>>>{};
    else if constexpr (!are_distinct<Wanted...>)
      return std::type_identity<wrong_argument<type_list<Wanted...>, because<reasons::gradients_name_each_input_once>>>{};
    else if constexpr (!std::is_same_v<others, type_list<>>)
      return argument_verdict<others, reasons::gradients_of_a_graph_take_columns_comparisons_and_spans>{};
    else if constexpr (spans != 0 && !(is_of_columns<Argument>::value || ...))
      return std::type_identity<wrong_argument<type_list<std::remove_cvref_t<Argument>...>,
                                               because<reasons::gradients_of_a_graph_take_columns_comparisons_and_spans>>>{};
    else if constexpr (spans != 0 && spans != sizeof...(Wanted))
      return std::type_identity<
          wrong_argument<type_list<Wanted...>, because<reasons::gradients_have_a_span_for_each_input_or_none>>>{};
    else if constexpr (std::is_same_v<given, type_list<>> && std::is_same_v<Own, type_list<>>)
      return std::type_identity<
          wrong_argument<Network, because<reasons::gradients_of_a_predictor_of_a_graph_take_a_comparison>>>{};
    else if constexpr (!may_be_compared(decltype(nodes_of_comparisons(given{})){}))
      return std::type_identity<wrong_argument<given, because<reasons::gradients_compare_nodes_of_the_graph_each_once>>>{};
    else if constexpr (!std::is_same_v<typename on_losses::type, no_complaint>)
      return on_losses{};
    else {
      using compared = compared_in<Argument...>;
      constexpr int missing = first_other_node<Network, typename compared::network>;
      if constexpr (missing >= 0)
        return std::type_identity<no_node<at_t<missing, typename compared::network::nodes>,
                                          because<reasons::gradients_compare_nodes_of_the_graph_each_once>>>{};
      else
        return sentence_on_program<program_of<compared>>(filter_t<is_of_columns, Argument...>{},
                                                         decltype(losses_of_comparisons(typename compared::comparisons{})){});
    }
  }

  template <class... Argument>
  static auto call(const weights_of_call<Network, T>& weights, Argument&... arguments) {
    using program = program_of<compared_in<Argument...>>;
    double factors[max_ends] = {};
    std::ranges::copy(weights.factors, factors);
    const auto weigh = [&]<class One>(const One& one) {
      if constexpr (is_comparison<One>) factors[index_in<typename One::node>(typename program::output_nodes{})] = one.weight;
    };
    (weigh(arguments), ...);
    result out;
    split_columns(
        [&](const auto& columns, auto&... others) {
          std::apply([&](const auto&... column) { compute<program>(weights, factors, out, std::tie(others...), column...); },
                     columns);
        },
        arguments...);
    if constexpr (!(result_span<Argument&, T> || ...)) return out;
  }

 private:
  template <class Program, class... Node, class... Array>
  static void compute(const weights_of_call<Network, T>& weights, std::span<const double> factors, result& out,
                      const auto& others, const column<Node, Array>&... columns) {
    constexpr const end_sizes& ends = ends_of_program<Program>;
    constexpr std::array<int, sizeof...(Wanted)> input{index_in<Wanted>(typename Program::network::inputs{})...};
    const std::tuple<column_of_call<Program, Node>...> read(columns...);
    samples<T> batch;
    std::string_view first;
    std::apply([&](const auto&... each) { (each.add_to(batch, first), ...); }, read);
    T* to[max_ends] = {};
    std::size_t next = 0;
    [[maybe_unused]] const auto store = [&](auto& one) {
      if constexpr (result_span<decltype(one), T>) {
        const int k = input[next++];
        to[k] = checked_result(std::span<T>(one), names_of_ends<Program>.inputs[k], batch.count, ends.inputs[k]);
      }
    };
    std::apply([&](auto&... each) { (store(each), ...); }, others);
    const auto keep = [&](auto& one) { to[input[next++]] = resized_result(one, batch.count); };
    if (next == 0) {
      if constexpr (sizeof...(Wanted) == 1)
        keep(out);
      else
        std::apply([&](auto&... each) { (keep(each), ...); }, out);
    }
    compute_gradients<Program, mask_of<Program>>(weights, batch, factors.first(std::size_t(ends.output_count)), to);
  }
};

/// The losses of a trainer, which gradients take if none is given.
template <class Program>
struct own_losses {
  using loss = typename Program::loss;
  using comparisons = type_list<>;
};
template <graph_program Program>
struct own_losses<Program> {
  template <class... Node, class... Output>
  static type_list<comparison<Node, typename Output::loss, type_list<>>...> find(type_list<Node...>, type_list<Output...>);
  using comparisons = decltype(find(typename Program::output_nodes{}, typename Program::outputs{}));
  using loss = std::conditional_t<length(comparisons{}) == 1, typename at_t<0, typename Program::outputs>::loss, void>;
};
template <>
struct own_losses<void> {
  using loss = void;
  using comparisons = type_list<>;
};

template <class Network, class Precision, class Own, class Wanted, class Arguments>
struct call_for_gradients : gradients_of_network<Network, Precision, typename Own::loss> {};
template <class Network, class Precision, class Own, class... Wanted, class... Argument>
  requires(is_graph<Network> &&
           (sizeof...(Wanted) > 0 || graph_of_several_ends<Network> || (is_column<std::remove_cvref_t<Argument>> || ...)))
struct call_for_gradients<Network, Precision, Own, type_list<Wanted...>, type_list<Argument...>>
    : gradients_of_graph<Network, Precision, typename Own::comparisons, Wanted...> {};

/// What trainer::gradients and predictor::gradients call. Program: that of a trainer, or void. Wanted: a list of inputs.
template <class Network, class Precision>
struct please_include_strata_train_input_gradients {
  using T = typename Precision::value_type;

  /// The diagnostic about a call. Argument: with its reference.
  template <class Program, class Wanted, class... Argument>
  using verdict =
      typename decltype(call_for_gradients<Network, Precision, own_losses<Program>, Wanted, type_list<Argument...>>::sentence(
          type_list<Argument...>{}))::type;

  /// What a call returns whose arguments are wrong.
  template <class Wanted, class... Argument>
  using result = typename call_for_gradients<Network, Precision, own_losses<void>, Wanted, type_list<Argument...>>::result;

  template <class Program, class Wanted, class... Argument>
  static auto call(const weights_of_call<Network, T>& weights, Argument&... arguments) {
    return call_for_gradients<Network, Precision, own_losses<Program>, Wanted, type_list<Argument&...>>::call(weights,
                                                                                                              arguments...);
  }
  template <class Program, class Wanted, class... Argument>
  static auto of_trainer(auto& training, Argument&... arguments) {
    if (!training.gradient_engines) training.gradient_engines = std::make_shared<reused_objects>();
    std::span<const double> factors;
    if constexpr (graph_program<Program>) factors = training.factors.of_output;
    return call<Program, Wanted>(
        {training.executor.parameters(), nullptr, factors, *static_cast<reused_objects*>(training.gradient_engines.get()), 0},
        arguments...);
  }
};

}  // namespace detail
}  // namespace strata
