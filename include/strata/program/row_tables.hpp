// The tables of a program of which a sample reads few rows (embeddings), and the elements of a batch that select those rows.
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

namespace core {
/// A parameter of which a sample reads few rows: those that some of its numbers name.
struct row_table {
  long begin;                     // of its first element in the arena of trained parameters
  int rows, width;                // width: elements of a row
  int layer;                      // its number
  detail::part_of_input names{};  // the numbers of a sample that name rows
  int name_count = 0;             // how many they are
};
}  // namespace core

namespace detail {
template <class Program>
constexpr int count_row_tables() {
  int n = 0;
  for (const tape_node& each : tape_of<typename Program::network::items>.nodes) n += each.operation->traits.looks_up;
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
    for (int i = slot.node; i < t.size && t.nodes[slot.node].operation->traits.looks_up; ++i)
      if (i == slot.node || t.nodes[i].owner == slot.node)
        tables[n++] = {slot.offset,
                       slot.what.extents[0],
                       slot.what.extents[1],
                       t.nodes[i].layer_number,
                       input_of_node(t.nodes, t.nodes[i].input[0]),
                       t.in(i).size()};
  }
  return tables;
}
}  // namespace detail

namespace core {
/// Those of a program, in the order of the arena.
template <class Program>
inline constexpr auto row_tables_of_program = detail::find_row_tables<Program>();

/// f(number, sample, element of the sample) for all numbers of some samples that name rows of a table. `input`: that of the
/// table, whose samples have `size` numbers.
template <class T, class F>
constexpr void for_each_row_name(const row_table& table, T* input, long size, row_range which, F&& f) {
  const detail::part_of_input& part = table.names;
  for (long n = which.begin; n < which.end; ++n)
    for (long i = part.first; i < part.first + long(table.name_count / part.count) * part.all; i += part.all)
      for (long c = i; c < i + part.count; ++c) f(input[n * size + c], n, c);
}
}  // namespace core

namespace detail {
/// How messages name the samples of a batch: numbered as the user counts, after those of earlier batches.
class sample_names {
 public:
  explicit sample_names(long before = 0) : before_(before) {}
  virtual ~sample_names() = default;
  virtual std::string of(long n) const { return detail::text_of({"sample ", before_ + n}); }

 private:
  long before_;
};
}  // namespace detail

namespace core {
/// Looks at the samples `which` of a batch. Throws strata_error that names the layer as the summary does, the sample and
/// the value, for a number that is no row: not whole, negative, too large, not finite.
template <class Program>
void refuse_other_rows(const samples<typename Program::value_type>& batch, row_range which,
                       const detail::sample_names& names = detail::sample_names()) {
  if constexpr (!row_tables_of_program<Program>.empty()) {
    using T = typename Program::value_type;
    for (const row_table& table : row_tables_of_program<Program>) {
      const int k = table.names.input;
      const T end = T(table.rows);
      for_each_row_name(table, batch.inputs[k], ends_of_program<Program>.inputs[k], which, [&](T number, long n, long element) {
        if (!(number >= 0 && number < end && number == T(int(number))))
          throw_error({names.of(n), " has the number ",
                       detail::formatted("%.*g", std::numeric_limits<T>::max_digits10, double(number)), " in element ", element,
                       ", but ", layer_names_of<typename Program::network>()[std::size_t(table.layer)], " has ", table.rows,
                       " rows: it takes whole numbers from 0 to ", table.rows - 1});
      });
    }
  }
}
}  // namespace core

}  // namespace strata
