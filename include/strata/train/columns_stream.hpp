// The batches of a data set with columns, in the order of the inputs and outputs of a graph.
#pragma once
#include <array>
#include <cstddef>
#include <strata/base/error.hpp>
#include <strata/base/meta.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/core/column.hpp>
#include <strata/program/program_of_graph.hpp>
#include <strata/train/batch_stream.hpp>
#include <strata/train/checks.hpp>
#include <strata/train/output_weights.hpp>
#include <type_traits>

namespace strata::detail {

/// For each input, truth and weights of an output of a program the number among the columns of a source of the same kind; -1:
/// there is none.
template <class Program, class Columns>
struct order_of_columns;
template <class Program, class... Column>
struct order_of_columns<Program, type_list<Column...>> {
  template <bool AreInputs>
  using nodes = join_t<
      std::conditional_t<(Column::kind == label_kind::none) == AreInputs, type_list<typename Column::node>, type_list<>>...>;
  template <class... Node>
  static constexpr std::array<int, sizeof...(Node)> find(type_list<Node...>, auto among) {
    return {index_in<Node>(among)...};
  }
  static constexpr auto inputs = find(typename Program::network::inputs{}, nodes<true>{});
  static constexpr auto truths = find(typename Program::output_nodes{}, nodes<false>{});
  template <class... Node>
  static type_list<weights_at<Node>...> weights_of(type_list<Node...>);
  static constexpr auto weights = find(decltype(weights_of(typename Program::output_nodes{})){}, nodes<true>{});
};

template <class Program, class Source>
class columns_stream final : public stream_over<typename Program::value_type, Source> {
  using T = typename Program::value_type;
  using base = stream_over<T, Source>;
  using order_of_source = order_of_columns<Program, typename Source::columns>;

 public:
  using base::base;

  bool next(samples<T>& batch) override {
    samples<T> columns;
    if (!base::next(columns)) return false;
    batch = {};
    batch.count = columns.count;
    for (std::size_t k = 0; k < order_of_source::inputs.size(); ++k) batch.inputs[k] = columns.inputs[order_of_source::inputs[k]];
    for (std::size_t k = 0; k < order_of_source::truths.size(); ++k)
      if (const int column = order_of_source::truths[k]; column >= 0) batch.truths[k] = columns.truths[column];
    for (std::size_t k = 0; k < order_of_source::weights.size(); ++k)
      if (const int column = order_of_source::weights[k]; column >= 0) {
        if (batch.truths[k].weights)
          throw_error({"the samples have weights already", for_end(names_of_ends<Program>.outputs[k]),
                       ", so of<...>(sample_weight(...)) cannot set them, too"});
        batch.truths[k].weights = columns.inputs[column];
      }
    return true;
  }
};

}  // namespace strata::detail
