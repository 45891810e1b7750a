// Where the parameters of a split program lie if each place is a process or a device, which has only those of its own stages.
#pragma once
#include <algorithm>
#include <iterator>
#include <strata/concepts/device.hpp>
#include <strata/network/parameter_ranges.hpp>
#include <strata/program/plan.hpp>
#include <utility>

namespace strata {

namespace core {
/// Whether a backend splits programs into stages whose places are processes: split_among. Its training plan has the offsets of
/// parameters in the arena of their place; its plan for inference has those of the whole arena.
template <class Backend>
concept divides_parameters = requires {
  typename Backend::split;
  typename Backend::communicator;
};
/// Whether the places of a backend that splits programs are devices with memory of their own. Both of its plans have the offsets
/// of parameters in the arena of their place.
template <class Backend>
concept divides_devices = requires { typename Backend::split; } && !divides_parameters<Backend> && !device_of<Backend>::is_host;
}  // namespace core

namespace detail {
/// The arena of a place: its trained parameters, then the others, each in the order of the layout.
template <int Slots, int Places>
struct place_arenas {
  struct slot {
    int place;
    long offset;  // in the arena of its place
  };
  // Of each slot of the layout. An array of pairs: in a loop over two arrays g++ 12 at -O2 took one of the addresses for null and
  // removed the calls that write parameters to devices.
  slot slots[Slots + 1] = {};
  long trainable[Places] = {}, size[Places] = {};
  long largest_slice = 0;  // of trained parameters of one place that follow each other in the whole arena
};

/// Calls f(range, k) for each trained parameter of a place: the range of the parameter in the arena of the place, and its number
/// among the trained parameters of the network. all: trained_ranges of the network.
template <int Slots, int Places, int Count>
constexpr void for_ranges_of_place(const place_arenas<Slots, Places>& arenas, const parameter_layout<Count>& l, const auto& all,
                                   int place, auto&& f) {
  for (int k = 0, s = 0; s < Count; ++s) {
    if (!l.slots[s].what.trainable) continue;
    parameter_range range = all.ranges[k++];
    if (arenas.slots[s].place != place) continue;
    range.end += arenas.slots[s].offset - range.begin;
    range.begin = arenas.slots[s].offset;
    f(range, k - 1);
  }
}

/// stage_of_node: of each node of the tape.
template <class Table, int N, int Count>
constexpr auto make_place_arenas(const plan<N>& p, const parameter_layout<Count>& l, const auto& stage_of_node) {
  place_arenas<Count, Table::places> a;
  const auto place_of = [&](const kernel_group& g) { return Table::place_of(stage_of_node[std::size_t(g.first)]); };
  for (const bool trainable : {true, false}) {
    int last = -1;  // place
    long slice = 0;
    for (int s = 0; s < Count; ++s) {
      if (l.slots[s].what.trainable != trainable) continue;
      const int place = a.slots[s].place = place_of(p.groups[p.group_of[l.slots[s].node]]);
      a.slots[s].offset = a.size[place];
      const long size = aligned_elements(l.slots[s].what.extents.size());
      a.size[place] += size;
      slice = (place == std::exchange(last, place) ? slice : 0) + size;
      if (trainable) a.largest_slice = std::max(a.largest_slice, slice);
    }
    if (trainable) std::copy(std::begin(a.size), std::end(a.size), a.trainable);
  }
  return a;
}

/// Moves the parameters of a plan, and what is derived from them, to the arenas of their places.
template <class Table, int N, int Count>
constexpr plan<N> in_place_arenas(plan<N> p, const parameter_layout<Count>& l, const auto& stage_of_node) {
  const auto a = make_place_arenas<Table>(p, l, stage_of_node);
  int found[N + 1] = {};  // parameters of a group are in the order of their slots
  for (int s = 0; s < Count; ++s) {
    const int g = p.group_of[l.slots[s].node];
    p.groups[g].parameters[found[g]++] = a.slots[s].offset;
  }
  long derived[Table::places] = {};
  for (int g = 0; g < p.group_count; ++g) {
    long& end = derived[Table::place_of(stage_of_node[std::size_t(p.groups[g].first)])];
    p.groups[g].derived = end;
    end += aligned_elements(p.groups[g].kernel.derived);
  }
  p.derived = *std::max_element(derived, derived + Table::places);
  return p;
}
}  // namespace detail

}  // namespace strata
