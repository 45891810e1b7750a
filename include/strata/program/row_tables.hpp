// The tables of a program of which a sample reads few rows (embeddings), and the numbers of a batch that name those rows.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/network/summary.hpp>
#include <strata/program/program.hpp>
#include <string>

namespace strata {

/// A parameter of which a sample reads few rows: those that its numbers name.
struct row_table {
  long begin;       // of its first element in the arena of trained parameters
  int rows, width;  // width: elements of a row
  int layer;        // its number
};

namespace detail {
template <class Program>
constexpr int count_row_tables() {
  int n = 0;
  for (const tape_node& each : tape_of<typename Program::network::items>.nodes) n += each.operation->looks_up;
  return n;
}

template <class Program>
constexpr auto find_row_tables() {
  constexpr const auto& t = tape_of<typename Program::network::items>;
  constexpr const auto& l = layout_of_program<Program>;
  std::array<row_table, count_row_tables<Program>()> tables{};
  std::size_t n = 0;
  for (int s = 0; s < l.count; ++s) {
    const parameter_slot& slot = l.slots[s];
    if (const tape_node& owner = t.nodes[slot.node]; owner.operation->looks_up)
      tables[n++] = {slot.offset, slot.what.extents[0], slot.what.extents[1], owner.layer_number};
  }
  return tables;
}
}  // namespace detail

/// Those of a program, in the order of the arena. They read the batch itself: every number of a sample is a row of each table.
template <class Program>
inline constexpr auto row_tables_of_program = detail::find_row_tables<Program>();

/// Looks at the samples `which` of a batch x. `samples_before`: of other batches, so that the message counts as the user does.
/// Throws strata::error that names the layer as the summary does, the sample and the value, for a number that is no row: not
/// whole, negative, too large, not finite.
template <class Program>
void refuse_other_rows(const typename Program::value_type* x, row_range which, long samples_before = 0) {
  if constexpr (!row_tables_of_program<Program>.empty()) {
    using T = typename Program::value_type;
    // What the smallest one has, all have.
    static constexpr row_table table = std::ranges::min(row_tables_of_program<Program>, {}, &row_table::rows);
    constexpr T end = T(table.rows);
    constexpr long size = Program::network::input_shape.size();
    const auto is_row = [](T number) { return number >= 0 && number < end && number == T(int(number)); };
    for (long i = which.begin * size; i < which.end * size; ++i)
      if (!is_row(x[i]))
        throw error({"sample ", samples_before + i / size, " has the number ",
                     detail::formatted("%.*g", std::numeric_limits<T>::max_digits10, double(x[i])), " in element ", i % size,
                     ", but ", layer_names_of<typename Program::network>()[std::size_t(table.layer)], " has ", table.rows,
                     " rows: it takes whole numbers from 0 to ", table.rows - 1});
  }
}

}  // namespace strata
