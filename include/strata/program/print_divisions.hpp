// The divided layers of a rank as text: its part of the parameters, and what ranks send each other.
#pragma once
#include <span>
#include <strata/base/linkage.hpp>
#include <strata/base/text_table.hpp>
#include <strata/network/network_of_rank.hpp>
#include <strata/network/summary.hpp>
#include <string>
#include <vector>

namespace strata {

namespace detail {
/// A divided node, in elements.
struct divided_node {
  int node;
  const char* how;
  long sends_forward, sends_backward;  // for a sample
  bool adds_up_forward, adds_up_backward;
  long copied;  // by this rank after each update
};
std::string divisions_text(int groups, int ranks, int element_size, std::span<const tape_node> nodes,
                           std::span<const parameter_slot> slots, std::span<const divided_node> divided);
}  // namespace detail

namespace core {
/// A line for each divided layer. An all-gather of 24 B per sample: each rank sends so many bytes to each other rank. An
/// all-reduce of 24 B per sample: that is the size of the sum. groups: of a mesh, each with all ranks.
template <divided_network Network>
std::string divisions_text(int element_size, int groups = 1) {
  using items = typename Network::items;
  constexpr const auto& t = tape_of<items>;
  constexpr const auto& l = layout_of<items>;
  std::vector<detail::divided_node> divided;
  for (int i = 0; i < t.size; ++i) {
    const detail::division_info& d = divisions_of<items>[i];
    if (!d.shard_of) continue;
    long copied = 0;
    for (const parameter_slot& s : std::span(l.slots, std::size_t(l.count)))
      if (s.node == i && d.shard_of(s.index, s.what.extents).is_copy)
        copied = l.slots[&s - l.slots - s.index].what.extents.size() / Network::ranks * (Network::ranks - 1);
    divided.push_back(
        {i, d.how(), d.sends_forward(t.in(i)), d.sends_backward(t.in(i)), d.adds_up_forward, d.adds_up_backward, copied});
  }
  return detail::divisions_text(groups, Network::ranks, element_size, t.nodes, std::span(l.slots, std::size_t(l.count)), divided);
}
}  // namespace core

namespace detail {
/// Called by print_plan.
template <class Network>
struct please_include_strata_program_print_divisions {
  static std::string text(int element_size, int groups) { return strata::core::divisions_text<Network>(element_size, groups); }
};
}  // namespace detail

}  // namespace strata

#if STRATA_DEFINES
#include <strata/program/print_divisions.ipp>
#endif
