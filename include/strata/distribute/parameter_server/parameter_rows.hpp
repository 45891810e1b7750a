// What travels of a shard with parts of tables, of which a batch reads few rows: these rows, and all that is no table.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <strata/cpu/update.hpp>
#include <strata/distribute/parameter_server/parameter_shards.hpp>
#include <strata/program/row_tables.hpp>
#include <vector>

namespace strata {

/// Elements [begin, end) of a shard, counted from its first one.
struct element_run {
  long begin = 0, end = 0;

  constexpr long size() const { return end - begin; }
};

inline long count_elements(std::span<const element_run> runs) {
  long sum = 0;
  for (const element_run& r : runs) sum += r.size();
  return sum;
}

/// The elements of some runs of `from`, one behind the other.
template <class T>
T* pack(const T* from, std::span<const element_run> runs, T* to) {
  for (const element_run& r : runs) to = std::copy(from + r.begin, from + r.end, to);
  return to;
}

/// The tables of a program whose rows travel one by one. One with a regularizer is not among them: every step needs all of its
/// rows for the penalty.
template <class Program>
struct travelling_tables {
  static constexpr auto all = row_tables_of_program<Program>;
  static constexpr bool travels(const row_table& table) {
    const auto trained = trained_ranges(layout_of_program<Program>);
    for (const parameter_range& p : trained.span())
      if (p.begin == table.begin) return p.regularizer.empty();
    return false;
  }
  static constexpr std::size_t count = std::size_t(std::ranges::count_if(all, travels));
  static constexpr auto value = [] {
    std::array<row_table, count> some{};
    std::ranges::copy_if(all, some.begin(), travels);
    return some;
  }();
};

/// The rows that some samples name, in order, each once. `numbers` are rows: see refuse_other_rows.
template <class T>
void find_rows(std::span<const T> numbers, std::vector<std::uint32_t>& rows) {
  rows.resize(numbers.size());
  std::ranges::transform(numbers, rows.begin(), [](T number) { return std::uint32_t(number); });
  std::ranges::sort(rows);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
}

/// How a shard travels: first the rest, which is no table, then the pieces of rows that a message names. Shards are cut without
/// regard to rows, so it may begin with the end of a row, and end with the begin of one. A shard without tables is all rest.
class shard_contents {
  /// What the shard has of a table.
  struct part {
    long begin, end;  // elements of the shard
    long first;       // the element of the table that lies at `begin`
    int width;

    std::uint32_t begin_row() const { return std::uint32_t(first / width); }
    std::uint32_t end_row() const { return std::uint32_t((first + end - begin + width - 1) / width); }
    element_run piece(std::uint32_t row) const {
      const long at = begin - first + long(row) * width;
      return {std::max(begin, at), std::min(end, at + width)};
    }
    /// Those of a sorted list that the shard has a piece of.
    std::span<const std::uint32_t> among(std::span<const std::uint32_t> rows) const {
      const auto from = std::ranges::lower_bound(rows, begin_row()), to = std::ranges::lower_bound(rows, end_row());
      return {from, to};
    }
  };
  long size_;
  std::vector<part> parts_;
  std::vector<element_run> rest_;

 public:
  /// `tables` are those of the whole program, in their order.
  shard_contents(const parameter_shard& place, std::span<const row_table> tables) : size_(place.size()) {
    long at = 0;
    for (const row_table& t : tables) {
      const long begin = std::max(t.begin, place.begin), end = std::min(t.begin + long(t.rows) * t.width, place.end);
      if (begin >= end) continue;
      parts_.push_back({begin - place.begin, end - place.begin, begin - t.begin, t.width});
      if (at < parts_.back().begin) rest_.push_back({at, parts_.back().begin});
      at = parts_.back().end;
    }
    if (at < size_) rest_.push_back({at, size_});
  }

  bool has_tables() const { return !parts_.empty(); }
  /// What is no table.
  std::span<const element_run> rest() const { return rest_; }

  bool has_any(std::span<const std::uint32_t> rows) const {
    return std::ranges::any_of(parts_, [&](const part& p) { return !p.among(rows).empty(); });
  }
  /// What the shard has of these rows of all tables. `rows` are in order, each once.
  std::vector<element_run> pieces_of(std::span<const std::uint32_t> rows) const {
    std::vector<element_run> pieces;
    for (const part& p : parts_)
      for (const std::uint32_t row : p.among(rows)) pieces.push_back(p.piece(row));
    return pieces;
  }

  /// How a message names rows: of each table how many, then which. `rows` are in order, each once.
  std::vector<std::uint32_t> names_of(std::span<const std::uint32_t> rows) const {
    std::vector<std::uint32_t> names;
    for (const part& p : parts_) {
      const auto mine = p.among(rows);
      names.push_back(std::uint32_t(mine.size()));
      names.insert(names.end(), mine.begin(), mine.end());
    }
    return names;
  }
  /// Takes the names from the front of a message with `left` bytes; `pieces` become what the shard has of these rows. Returns
  /// what is wrong with the names; nullptr: nothing.
  template <class Read>
  const char* read_names(Read& read, std::size_t& left, std::vector<element_run>& pieces) const {
    for (const part& p : parts_) {
      std::uint32_t count = 0;
      if (left < sizeof count) return "the size of the message is wrong";
      read(&count, sizeof count);
      left -= sizeof count;
      if (count > p.end_row() - p.begin_row() || left < count * sizeof(std::uint32_t))
        return "the message names more rows than the shard has, or than it holds";
      std::vector<std::uint32_t> rows(count);
      read(rows.data(), count * sizeof(std::uint32_t));
      left -= count * sizeof(std::uint32_t);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i] < p.begin_row() || rows[i] >= p.end_row()) return "the message names a row that the shard does not have";
        if (i > 0 && rows[i] <= rows[i - 1]) return "the rows of the message are not in order, each once";
        pieces.push_back(p.piece(rows[i]));
      }
    }
    return nullptr;
  }

  /// Slices, at multiples of slice_alignment, that hold the rest and these pieces, which may be in any order, and overlap.
  std::vector<element_run> slices_around(std::vector<element_run> pieces) const {
    pieces.insert(pieces.end(), rest_.begin(), rest_.end());
    std::ranges::sort(pieces, {}, &element_run::begin);
    std::vector<element_run> slices;
    for (const element_run& p : pieces) {
      const long begin = p.begin / slice_alignment * slice_alignment;
      const long end = std::min(size_, (p.end + slice_alignment - 1) / slice_alignment * slice_alignment);
      if (slices.empty() || begin > slices.back().end)
        slices.push_back({begin, end});
      else
        slices.back().end = std::max(slices.back().end, end);
    }
    return slices;
  }
};

/// Of all shards, in their order.
inline std::vector<shard_contents> contents_of(std::span<const parameter_shard> shards, std::span<const row_table> tables) {
  std::vector<shard_contents> all;
  for (const parameter_shard& place : shards) all.emplace_back(place, tables);
  return all;
}

}  // namespace strata
