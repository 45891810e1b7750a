// Columns of a graph that are given as arrays, and the diagnostics about columns that do not fit.
#pragma once
#include <concepts>
#include <span>
#include <strata/base/error.hpp>
#include <strata/base/node_name.hpp>
#include <strata/data/core/column.hpp>
#include <strata/program/program_of_graph.hpp>
#include <strata/train/arrays.hpp>
#include <strata/train/data_verdict.hpp>
#include <strata/train/fit_verdict.hpp>
#include <strata/train/output_weights.hpp>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace strata {

namespace core {
// The words of the diagnostics. None is ever defined.
template <class Node, class Why>
struct column_is_missing;
template <class Node, class Why>
struct column_of_no_end;
template <class Node, class Why>
struct column_given_twice;
template <class Node, class Why>
struct column_without_loss;
template <class Node, class Why>
struct no_output;
template <class Node, class Taken, class Yielded, class Why>
struct column_mismatch;
}  // namespace core

namespace reasons {
inline constexpr reason a_graph_takes_columns_such_as_of_image_of_an_array_or_batches_of_a_data_set_with_columns{
    "a graph takes columns, of<image>(pixels), or batches of a data set with columns"};
inline constexpr reason each_input_has_a_column_and_for_training_each_output{
    "each input of the graph has a column and, except in predict, each output that is compared with a truth: of<tags>(words)"};
inline constexpr reason a_column_has_the_name_of_an_input_or_an_output_of_the_graph;
inline constexpr reason an_input_or_an_output_has_one_column;
inline constexpr reason an_output_that_is_not_compared_has_no_column_for_training{
    "an output that is not compared, or whose loss needs no truth, has no column, except in predict: compare<box>(a loss) "
    "compares it"};
inline constexpr reason the_input_has_the_shape_of_one_sample{"input<...> has the extents of one sample"};
inline constexpr reason weights_in_a_graph_are_those_of_an_output_such_as_of_kind_of_sample_weight{
    "weights of samples and classes in a graph are those of one output: of<kind>(sample_weight(w)), of<kind>(class_weight{...})"};
inline constexpr reason classes_are_those_of_an_output_that_is_compared_with_classes_or_targets{
    "of<kind>(class_weight{...}) takes an output of the graph that is compared with classes or targets"};
}  // namespace reasons

namespace detail {

/// The diagnostic about the nodes of columns.
template <class Program, bool NeedsLabels, class... Node>
struct nodes_verdict {
  template <class... Input, class... Output, class... Compared, class... Weighed>
  static auto find(type_list<Input...>, type_list<Output...>, type_list<Compared...>, type_list<Weighed...>) {
    constexpr int no_end = first_false({(times_among<Node, Input..., Output..., weights_at<Weighed>...> > 0)..., true}),
                  twice = first_false({(times_among<Node, Node...> == 1)..., true}),
                  missing = first_false(
                      {(times_among<Input, Node...> > 0)..., (!NeedsLabels || times_among<Compared, Node...> > 0)..., true}),
                  without_loss = first_false(
                      {(!NeedsLabels || times_among<Node, Input..., Compared..., weights_at<Weighed>...> > 0)..., true});
    using nodes = type_list<Node...>;
    if constexpr (no_end >= 0)
      return std::type_identity<
          column_of_no_end<at_t<no_end, nodes>, because<reasons::a_column_has_the_name_of_an_input_or_an_output_of_the_graph>>>{};
    else if constexpr (twice >= 0)
      return std::type_identity<column_given_twice<at_t<twice, nodes>, because<reasons::an_input_or_an_output_has_one_column>>>{};
    else if constexpr (without_loss >= 0)
      return std::type_identity<column_without_loss<
          at_t<without_loss, nodes>, because<reasons::an_output_that_is_not_compared_has_no_column_for_training>>>{};
    else if constexpr (missing >= 0)
      return std::type_identity<column_is_missing<at_t<missing, type_list<Input..., Compared...>>,
                                                  because<reasons::each_input_has_a_column_and_for_training_each_output>>>{};
    else
      return std::type_identity<no_complaint>{};
  }
  using type = typename decltype(find(typename Program::network::inputs{}, typename Program::output_nodes{},
                                      outputs_with_truth<Program>{}, outputs_with_loss<Program>{}))::type;
};

/// The diagnostic about the shape and the kind of one column.
template <class Program, class Column, bool NeedsLabels>
struct column_verdict {
  using node = typename Column::node;
  static constexpr shape taken = shape_of_end<Program, node>, yielded = Column::extents;
  static constexpr int output = index_in<node>(typename Program::output_nodes{});

  static auto find() {
    if constexpr (output < 0) {
      if constexpr (taken != yielded)
        return std::type_identity<column_mismatch<node, typename spelled<the_network_takes, taken>::type,
                                                  typename spelled<the_data_set_yields, yielded>::type,
                                                  because<reasons::the_input_has_the_shape_of_one_sample>>>{};
      else
        return std::type_identity<no_complaint>{};
    } else if constexpr (NeedsLabels) {
      using loss = typename at_t<output, typename Program::outputs>::loss;
      if constexpr (loss::labels != Column::kind)
        return std::type_identity<
            column_mismatch<node, the_loss_takes_labels<loss, loss::labels>, the_data_set_has_labels<Column::kind>,
                            because<why_other_labels<loss>(Column::kind, yielded)>>>{};
      else if constexpr (loss::labels == label_kind::dense && taken != yielded)
        return std::type_identity<column_mismatch<node, typename spelled<the_network_predicts, taken>::type,
                                                  typename spelled<the_targets_have, yielded>::type,
                                                  because<reasons::the_targets_have_the_shape_of_the_predictions>>>{};
      else
        return std::type_identity<no_complaint>{};
    } else {
      return std::type_identity<no_complaint>{};
    }
  }
  using type = typename decltype(find())::type;
};

template <class Program, class Held, bool NeedsLabels, class... Column>
auto sentence_on_columns(type_list<Column...>) {
  using T = typename Program::value_type;
  using nodes = typename nodes_verdict<Program, NeedsLabels, typename Column::node...>::type;
  if constexpr (!std::is_same_v<nodes, no_complaint>)
    return std::type_identity<nodes>{};
  else if constexpr (sizeof(Held) > sizeof(T))
    return std::type_identity<
        data_mismatch<the_network_computes_in<T>, the_batches_hold<Held>, because<reasons::leave_out_double_in_batch>>>{};
  else
    return std::type_identity<first_complaint<typename column_verdict<Program, Column, NeedsLabels>::type...>>{};
}

template <graph_program Program, class Source, bool NeedsLabels>
  requires(batch_source<Source> && has_columns<Source>)
struct data_verdict<Program, Source, NeedsLabels> {
  using held = typename Source::value_type::value_type;
  using type = typename decltype(sentence_on_columns<Program, held, NeedsLabels>(typename Source::columns{}))::type;
};
template <graph_program Program, class Source, bool NeedsLabels>
  requires(!batch_source<Source> || !has_columns<Source>)
struct data_verdict<Program, Source, NeedsLabels> {
  using type = wrong_argument<
      Source, because<(data::detail::is_element_view<Source>
                           ? reasons::the_data_must_come_in_batches_put_batch_after_it
                           : reasons::a_graph_takes_columns_such_as_of_image_of_an_array_or_batches_of_a_data_set_with_columns)>>;
};
template <graph_program Program, class X, class Y, bool NeedsLabels>
struct data_verdict<Program, arrays<X, Y>, NeedsLabels> {
  using type =
      wrong_argument<X,
                     because<reasons::a_graph_takes_columns_such_as_of_image_of_an_array_or_batches_of_a_data_set_with_columns>>;
};

template <graph_program Program, class... Node, class... Array, bool NeedsLabels>
struct data_verdict<Program, given_columns<column<Node, Array>...>, NeedsLabels> {
  static auto sentence() {
    constexpr int wrong = first_false({array_traits<std::remove_cvref_t<Array>>::valid..., true});
    using nodes = typename nodes_verdict<Program, NeedsLabels, Node...>::type;
    if constexpr (!std::is_same_v<nodes, no_complaint>)
      return std::type_identity<nodes>{};
    else if constexpr (wrong >= 0)
      return std::type_identity<wrong_argument<at_t<wrong, type_list<column<Node, Array>...>>,
                                               because<reasons::x_and_y_are_contiguous_numbers_such_as_a_vector_of_float>>>{};
    else
      return data_verdict<Program,
                          decltype(batches_in_order<typename Program::value_type>(
                              samples_of_columns<Program>("", std::declval<const column<Node, Array>&>()...), {}, batch_size(1))),
                          NeedsLabels>{};
  }
  using type = typename decltype(sentence())::type;
};

template <class Argument>
auto column_alone(Argument& argument) {
  if constexpr (is_column<std::remove_const_t<Argument>>)
    return std::tuple<const Argument&>(argument);
  else
    return std::tuple<>();
}
template <class Argument>
auto option_alone(Argument& argument) {
  if constexpr (is_column<std::remove_const_t<Argument>>)
    return std::tuple<>();
  else
    return std::tuple<Argument&>(argument);
}
/// f(tuple of the columns, options...) of arguments in any order.
template <class... Argument>
void split_columns(const auto& f, Argument&... arguments) {
  const auto columns = std::tuple_cat(column_alone(arguments)...);
  std::apply([&](auto&... option) { f(columns, option...); }, std::tuple_cat(option_alone(arguments)...));
}

template <class Argument>
struct is_given_column : std::bool_constant<is_column<std::remove_const_t<Argument>>> {};
template <class Argument>
struct is_given_option : std::bool_constant<!is_column<std::remove_const_t<Argument>>> {};
template <class... Columns>
given_columns<std::remove_const_t<Columns>...> given_in(type_list<Columns...>);

/// The diagnostic for an option with the weights of classes.
template <class Program, class Option>
struct class_weight_verdict {
  using type = no_complaint;
};
template <class Program, class Node>
  requires(index_in<Node>(outputs_with_truth<Program>{}) < 0)
struct class_weight_verdict<Program, classes_at<Node>> {
  using type = no_output<Node, because<reasons::classes_are_those_of_an_output_that_is_compared_with_classes_or_targets>>;
};

/// The first diagnostic for the arguments of fit and evaluate of a graph, whose weights are those of an output.
template <class Program, class Verdict, class... Options>
using verdict_with_weights = first_complaint<
    typename argument_verdict<join_t<filter_t<is_sample_weights, std::remove_cvref_t<Options>...>,
                                     filter_t<is_class_weight, std::remove_cvref_t<Options>...>>,
                              reasons::weights_in_a_graph_are_those_of_an_output_such_as_of_kind_of_sample_weight>::type,
    typename class_weight_verdict<Program, std::remove_cvref_t<Options>>::type..., typename Verdict::type>;
template <template <class, class, class...> class Verdict, class Program, class Given, class... Options>
auto verdict_with_options(type_list<Options...>)
    -> verdict_with_weights<Program, Verdict<Program, Given, Options...>, Options...>;
/// The same for columns of arrays and options among the arguments.
template <template <class, class, class...> class Verdict, class Program, class... Argument>
using verdict_on_columns =
    decltype(verdict_with_options<Verdict, Program, decltype(given_in(filter_t<is_given_column, Argument...>{}))>(
        filter_t<is_given_option, Argument...>{}));

}  // namespace detail

}  // namespace strata
