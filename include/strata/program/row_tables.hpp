// The tables of a program of which a sample reads few rows (embeddings), and the numbers of a batch that name those rows.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/batch_source.hpp>
#include <strata/network/layer_names.hpp>
#include <strata/program/program.hpp>
#include <string>

namespace strata {

/// A parameter of which a sample reads few rows: those that its numbers name.
struct row_table {
  long begin;       // of its first element in the arena of trained parameters
  int rows, width;  // width: elements of a row
  int layer;        // its number
  int input = 0;    // of the network: its numbers name rows
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
      tables[n++] = {slot.offset, slot.what.extents[0], slot.what.extents[1], owner.layer_number,
                     input_viewed_by(t.nodes, owner.input[0])};
  }
  return tables;
}
}  // namespace detail

/// Those of a program, in the order of the arena. Each reads an input of the network: every number of it is a row of the table.
template <class Program>
inline constexpr auto row_tables_of_program = detail::find_row_tables<Program>();

namespace detail {
/// The smallest of the tables that read an input; null: there are none. What it has, all have.
template <class Program>
constexpr const row_table* smallest_table_of(int input) {
  const row_table* found = nullptr;
  for (const row_table& each : row_tables_of_program<Program>)
    if (each.input == input && (!found || each.rows < found->rows)) found = &each;
  return found;
}
}  // namespace detail

namespace detail {
/// How messages name the samples of a batch: as the user counts, after those of other batches.
class sample_names {
 public:
  explicit sample_names(long before = 0) : before_(before) {}
  virtual ~sample_names() = default;
  virtual std::string of(long n) const { return detail::text_of({"sample ", before_ + n}); }

 private:
  long before_;
};
}  // namespace detail

/// Looks at the samples `which` of a batch. Throws strata::error that names the layer as the summary does, the sample and the
/// value, for a number that is no row: not whole, negative, too large, not finite.
template <class Program>
void refuse_other_rows(const samples<typename Program::value_type>& batch, row_range which,
                       const detail::sample_names& names = detail::sample_names()) {
  if constexpr (!row_tables_of_program<Program>.empty()) {
    using T = typename Program::value_type;
    constexpr const end_sizes& ends = ends_of_program<Program>;
    for (int k = 0; k < ends.input_count; ++k) {
      const row_table* const table = detail::smallest_table_of<Program>(k);
      if (!table) continue;
      const T* const x = batch.inputs[k];
      const T end = T(table->rows);
      const long size = ends.inputs[k];
      const auto is_row = [end](T number) { return number >= 0 && number < end && number == T(int(number)); };
      for (long i = which.begin * size; i < which.end * size; ++i)
        if (!is_row(x[i]))
          throw_error({names.of(i / size), " has the number ",
                       detail::formatted("%.*g", std::numeric_limits<T>::max_digits10, double(x[i])), " in element ", i % size,
                       ", but ", layer_names_of<typename Program::network>()[std::size_t(table->layer)], " has ", table->rows,
                       " rows: it takes whole numbers from 0 to ", table->rows - 1});
    }
  }
}

}  // namespace strata
