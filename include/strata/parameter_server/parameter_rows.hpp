// Embedding tables at parameter servers: of a table, only the rows that a batch reads are sent.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <strata/base/text.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <strata/parameter_server/parameter_shards.hpp>
#include <strata/program/row_tables.hpp>
#include <string>
#include <vector>

namespace strata {

namespace core {
/// Elements [begin, end) of a shard.
struct element_run {
  long begin = 0, end = 0;

  constexpr long size() const { return end - begin; }
};

inline long count_elements(std::span<const element_run> runs) {
  long sum = 0;
  for (const element_run& r : runs) sum += r.size();
  return sum;
}
}  // namespace core

namespace detail {
/// Copies some runs of `from`, one after the other. Returns the end of the copy.
template <class T>
T* pack(const T* from, std::span<const element_run> runs, T* to) {
  for (const element_run& r : runs) to = std::copy(from + r.begin, from + r.end, to);
  return to;
}
}  // namespace detail

namespace core {
/// The tables of a program of which only rows are sent. Tables with a regularizer are not among them, because each step needs all
/// of their rows for the penalty.
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
}  // namespace core

namespace detail {
/// Puts rows in ascending order, each once.
inline void keep_each_once(std::vector<std::uint32_t>& rows) {
  std::ranges::sort(rows);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
}
}  // namespace detail

namespace core {
/// The elements of a shard in a message: first the rest, which belongs to no table, then the pieces of the rows in the message.
/// Shards are cut without regard to rows, so a shard may begin and end within a row. A shard without tables consists of the rest
/// only.
class shard_contents {
  /// The part of a table that the shard has.
  struct part {
    long begin, end;  // elements of the shard
    long first;       // element of the table at `begin`
    int width;        // elements of a row

    std::uint32_t begin_row() const { return std::uint32_t(first / width); }
    std::uint32_t end_row() const { return std::uint32_t((first + end - begin + width - 1) / width); }
    element_run piece(std::uint32_t row) const {
      const long at = begin - first + long(row) * width;
      return {std::max(begin, at), std::min(end, at + width)};
    }
    /// The rows of an ascending list that the part has a piece of.
    std::span<const std::uint32_t> among(std::span<const std::uint32_t> rows) const {
      const auto from = std::ranges::lower_bound(rows, begin_row()), to = std::ranges::lower_bound(rows, end_row());
      return {from, to};
    }
  };
  long size_;
  std::vector<part> parts_;
  std::vector<element_run> rest_;

 public:
  /// `tables`: all of the program, in ascending order.
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
  /// The elements that belong to no table.
  std::span<const element_run> rest() const { return rest_; }

  bool has_any(std::span<const std::uint32_t> rows) const {
    return std::ranges::any_of(parts_, [&](const part& p) { return !p.among(rows).empty(); });
  }
  /// The elements of these rows, of all tables. `rows` are in ascending order, each once.
  std::vector<element_run> pieces_of(std::span<const std::uint32_t> rows) const {
    std::vector<element_run> pieces;
    for (const part& p : parts_)
      for (const std::uint32_t row : p.among(rows)) pieces.push_back(p.piece(row));
    return pieces;
  }

  /// The given rows of which the shard has a piece. `rows` are in ascending order, each once.
  std::vector<std::uint32_t> rows_among(std::span<const std::uint32_t> rows) const {
    std::vector<std::uint32_t> mine;
    for (const part& p : parts_) {
      const auto some = p.among(rows);
      mine.insert(mine.end(), some.begin(), some.end());
    }
    if (parts_.size() > 1) {
      std::ranges::sort(mine);
      mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
    }
    return mine;
  }
  /// The reason why a message must not have these rows; empty if it may.
  std::string what_is_wrong(std::span<const std::uint32_t> rows) const {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i > 0 && rows[i] <= rows[i - 1])
        return detail::text_of({"row ", rows[i], " after row ", rows[i - 1], ": rows must be in ascending order, each once"});
      const auto has = [&](const part& p) { return rows[i] >= p.begin_row() && rows[i] < p.end_row(); };
      if (std::ranges::none_of(parts_, has)) return detail::text_of({"the shard has no part of row ", rows[i]});
    }
    return "";
  }

  /// Slices at multiples of slice_alignment that hold the rest and these pieces. The pieces may be in any order and overlap.
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

/// The contents of all shards, in their order.
inline std::vector<shard_contents> contents_of(std::span<const parameter_shard> shards, std::span<const row_table> tables) {
  std::vector<shard_contents> all;
  for (const parameter_shard& place : shards) all.emplace_back(place, tables);
  return all;
}
}  // namespace core

}  // namespace strata
