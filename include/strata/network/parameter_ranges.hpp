// The place of each trained parameter in the arena, and the slices of an arena that belong to threads and processes.
#pragma once
#include <algorithm>
#include <span>
#include <strata/base/arena.hpp>
#include <strata/network/layout.hpp>

namespace strata::core {

/// Slices of arenas begin and end at multiples of this number of elements.
inline constexpr long slice_alignment = parameter_alignment;

/// Norms are sums over pieces of this many elements, which are added in order, so that the bits do not depend on the device or
/// the number of threads. Slices end where a piece ends.
inline constexpr long norm_piece = 1024;

/// The place of a parameter in the arenas: its elements, then padding up to `end`. Padding is zero before and after each step.
struct parameter_range {
  long begin = 0, end = 0;
  penalty regularizer{};
  long elements = end - begin;  // without padding
  bool frozen = false;          // frozen at run time: updates do not change it, its penalty is 0
  long rows = 1, columns = 1;   // last two extents, of one matrix or several; 1: fewer than two

  /// Whether its matrices can be factored into two shorter vectors.
  constexpr bool is_matrices() const { return rows > 1 && columns > 1; }
};

template <int Capacity>
struct parameter_ranges {
  parameter_range ranges[Capacity + 1] = {};
  int count = 0;
  constexpr std::span<const parameter_range> span() const { return {ranges, std::size_t(count)}; }
};

/// The trained parameters of a layout, in the order of the arena. frozen: a flag per slot of the layout; empty: no slot is.
template <int Count>
constexpr parameter_ranges<Count> trained_ranges(const parameter_layout<Count>& layout, std::span<const bool> frozen = {}) {
  parameter_ranges<Count> trained;
  for (int i = 0; i < Count; ++i)
    if (const parameter& what = layout.slots[i].what; what.trainable) {
      const int rank = what.extents.rank();
      trained.ranges[trained.count++] = {.begin = layout.slots[i].offset,
                                         .end = 0,
                                         .regularizer = what.regularizer,
                                         .elements = what.extents.size(),
                                         .frozen = !frozen.empty() && frozen[std::size_t(i)],
                                         .rows = rank < 2 ? 1 : what.extents[rank - 2],
                                         .columns = rank < 2 ? 1 : what.extents[rank - 1]};
    }
  for (int i = 0; i < trained.count; ++i)
    trained.ranges[i].end = i + 1 < trained.count ? trained.ranges[i + 1].begin : layout.trainable;
  return trained;
}

/// Slice `i` of `count` of a range of an arena. It ends where a piece of the arena ends, or at the end of the range.
constexpr element_range slice_of(element_range all, int i, int count) {
  const long first = all.begin / norm_piece, pieces = (all.end + norm_piece - 1) / norm_piece - first;
  const auto cut = [&](int k) { return std::clamp((first + pieces * k / count) * norm_piece, all.begin, all.end); };
  return {cut(i), cut(i + 1)};
}

/// The elements of the largest of `count` slices of an arena of so many elements.
constexpr long largest_slice(long elements, int count) {
  const long pieces = (elements + norm_piece - 1) / norm_piece;
  return std::min(elements, (pieces + count - 1) / count * norm_piece);
}

/// Each thread of a team calls f(begin, end) for its slice of a range of an arena; a slice may be empty.
template <class Team, class F>
void for_slices(Team& team, element_range all, F&& f) {
  const int count = team.size();
  team.for_tasks(count, [&](int i, int) {
    const element_range slice = slice_of(all, i, count);
    f(slice.begin, slice.end);
  });
}

/// The index of the piece that contains an element of a parameter. A piece belongs to one parameter, so two pieces may lie in the
/// same norm_piece elements of the arena. origin: the offset of the parameter in the arena.
constexpr long piece_of(long parameter, long element, long origin = 0) {
  return (element + origin % norm_piece) / norm_piece + parameter;
}

/// The indices of the pieces that lie in a slice of an arena.
constexpr element_range pieces_of(std::span<const parameter_range> parameters, element_range slice) {
  element_range pieces;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const long from = std::max(slice.begin, parameters[k].begin), to = std::min(slice.end, parameters[k].end);
    if (from >= to) continue;
    if (pieces.size() == 0) pieces.begin = piece_of(long(k), from);
    pieces.end = piece_of(long(k), to - 1) + 1;
  }
  return pieces;
}

}  // namespace strata::core
