// The place of a rank's parameters in those of the whole network.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <strata/network/layout.hpp>
#include <strata/network/network_of_rank.hpp>

namespace strata::detail {

/// The part of a parameter of the whole network that a rank stores: for the extents (outer, extent, inner) those from rank *
/// own_extent on along the middle axis. Beyond the extent its elements are 0.
struct shard_place {
  int whole_slot = 0;
  int extent = 1, own_extent = 1;
  long inner = 0;
  bool is_divided = false, is_copy = false;

  /// Calls f(element of the whole parameter, own element, count) for the own elements [begin, end) that exist in the whole one.
  template <class F>
  constexpr void for_runs(int rank, long begin, long end, F&& f) const {
    const int first = is_divided ? rank * own_extent : 0, there = std::clamp(extent - first, 0, own_extent);
    const long row = long(own_extent) * inner;
    for (long at = begin; at < end;) {
      const long outer = at / row, in_row = at % row, count = std::min(end, (outer + 1) * row) - at;
      if (const long exists = std::min(count, there * inner - in_row); exists > 0)
        f((outer * extent + first) * inner + in_row, at, exists);
      at += count;
    }
  }
  /// Calls f(element of the whole parameter, own element, count) for the elements of a rank that lie in [begin, end) of the whole
  /// parameter.
  template <class F>
  constexpr void for_runs_of_whole(int rank, long begin, long end, F&& f) const {
    const int first = is_divided ? rank * own_extent : 0, there = std::clamp(extent - first, 0, own_extent);
    const long row = extent * inner, own_row = own_extent * inner;
    for (long outer = begin / row; outer * row < end; ++outer) {
      const long start = outer * row + first * inner, from = std::max(begin, start), to = std::min(end, start + there * inner);
      if (from < to) f(from, outer * own_row + from - start, to - from);
    }
  }
  /// The largest number of elements that a rank stores of any `elements` successive ones of the whole parameter.
  constexpr long most_of(long elements) const {
    return std::min(elements, (elements / (extent * inner) + 2) * own_extent * inner);
  }
};
/// The shard_place of each parameter of a rank's network.
template <divided_network Network>
inline constexpr auto shard_places = [] {
  constexpr const auto& own = layout_of<typename Network::items>;
  constexpr const auto& whole = layout_of<typename Network::whole::items>;
  std::array<shard_place, std::size_t(own.count) + 1> all{};
  for (int s = 0; s < own.count; ++s) {
    const parameter_slot& it = own.slots[s];
    const auto& division = divisions_of<typename Network::items>[it.node];
    const shard part = division.shard_of ? division.shard_of(it.index, it.what.extents) : shard{it.index};
    shard_place& p = all[std::size_t(s)];
    while (whole.slots[p.whole_slot].node != it.node || whole.slots[p.whole_slot].index != part.of) ++p.whole_slot;
    const shape extents = whole.slots[p.whole_slot].what.extents;
    p.is_divided = part.axis >= 0, p.is_copy = part.is_copy;
    p.inner = 1;
    if (p.is_divided) {
      p.extent = extents[part.axis], p.own_extent = it.what.extents[part.axis];
      for (int k = part.axis + 1; k < extents.rank(); ++k) p.inner *= extents[k];
    } else {
      p.extent = p.own_extent = extents.size();
    }
  }
  return all;
}();

}  // namespace strata::detail
