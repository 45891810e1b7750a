// The predictions of a graph, output by output.
#pragma once
#include <algorithm>
#include <cstddef>
#include <strata/base/error.hpp>
#include <strata/base/node_name.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/data/core/column.hpp>
#include <strata/program/program_of_graph.hpp>
#include <strata/program/row_tables.hpp>
#include <strata/train/arrays.hpp>
#include <strata/train/columns_verdict.hpp>
#include <strata/train/predictions.hpp>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace strata::detail {

template <class Program, class Outputs = typename Program::network::outputs>
struct predicted_graph;
template <class Program, class... Node>
struct predicted_graph<Program, type_list<Node...>> {
  using type = std::tuple<predictions<typename Program::value_type, shape_of_end<Program, Node>>...>;
};
template <class Program, class Node>
struct predicted_graph<Program, type_list<Node>> {
  using type = predictions<typename Program::value_type, shape_of_end<Program, Node>>;
};

/// Makes room for `count` more samples behind `before`; returns where their outputs go, in the order of the tape.
template <class Program, class Predicted>
output_rows<typename Program::value_type> rows_after(Predicted& out, std::size_t before, std::size_t count) {
  output_rows<typename Program::value_type> to;
  const auto add = [&](auto& one, int output) {
    const std::size_t size = std::size_t(one.extents.size());
    one.values.resize((before + count) * size);
    to.at[output] = one.values.data() + before * size;
  };
  if constexpr (requires { out.values; })
    add(out, 0);
  else
    [&]<class... Node>(type_list<Node...>) {
      std::apply([&](auto&... each) { (add(each, index_in<Node>(typename Program::output_nodes{})), ...); }, out);
    }(typename Program::network::outputs{});
  return to;
}

/// The first end sets the number of samples. Throws strata_error if another one has a different number.
template <class T>
void set_count(samples<T>& all, std::string_view& first, const char* call, std::string_view name, std::size_t count) {
  if (!first.empty() && int(count) != all.count)
    throw_error({call, ": ", all.count, " samples of ", first, ", but ", count, " of ", name});
  first = name, all.count = int(count);
}

/// The values of a column for an input of a graph; nothing for an output.
template <class Program, class Node, int Input = index_in<Node>(typename Program::network::inputs{})>
struct column_to_predict {
  using T = typename Program::value_type;
  values_of_array<T, shape_of_end<Program, Node>> rows;

  explicit column_to_predict(const auto& given, const char* call = "predict")
      : rows(column_of_rows<Program>(call, given).values) {}
  void add_to(samples<T>& all, std::string_view& first, const char* call = "predict") const {
    set_count(all, first, call, node_name<Node>, rows.values().size() / std::size_t(ends_of_program<Program>.inputs[Input]));
    all.inputs[Input] = rows.values().data();
  }
};
template <class Program, class Node>
struct column_to_predict<Program, Node, -1> {
  explicit column_to_predict(const auto&) {}
  void add_to(auto&, auto&) const {}
};

/// Predicts columns of arrays in pieces: calls prepare(size of the largest piece), then compute(piece, where its outputs go) for
/// each. Throws strata_error as predict_in_pieces does, and if the columns have different numbers of samples.
template <class Program>
struct please_include_strata_train_graph_trainer {
  using T = typename Program::value_type;
  using predicted = typename predicted_graph<Program>::type;

  template <class... Node, class... Array>
  static predicted predict(const auto& prepare, const auto& compute, const column<Node, Array>&... columns) {
    using sentence = typename data_verdict<Program, given_columns<column<Node, Array>...>, false>::type;
    static_assert(diagnosed<sentence>[0]);
    predicted out;
    if constexpr (std::is_same_v<sentence, no_complaint>) {
      constexpr const end_sizes& ends = ends_of_program<Program>;
      constexpr int most = most_predicted_at_once;
      const std::tuple<column_to_predict<Program, Node>...> rows(columns...);
      samples<T> all;
      std::string_view first;
      std::apply([&](const auto&... each) { (each.add_to(all, first), ...); }, rows);
      const output_rows<T> to = rows_after<Program>(out, 0, std::size_t(all.count));
      prepare(std::min(all.count, most));
      for (int at = 0; at < all.count; at += most) {
        const samples<T> piece = all.rows(at, most, ends);
        refuse_other_rows<Program>(piece, {0, piece.count}, sample_names(at));
        output_rows<T> own;
        for (int k = 0; k < ends.output_count; ++k) own.at[k] = to.at[k] + at * ends.outputs[k];
        compute(piece, own);
      }
    }
    return out;
  }
};

}  // namespace strata::detail
