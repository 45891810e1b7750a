// Which groups of a plan compute backward while layers are frozen at run time.
#pragma once
#include <cstddef>
#include <span>
#include <strata/network/layout.hpp>
#include <strata/program/plan.hpp>
#include <vector>

namespace strata {

namespace core {
/// What kernel_group::trains and kernel_group::trainable are for a group while layers are frozen.
struct trained_group {
  bool trains = false;
  bool parameters[max_group_parameters] = {};
};
}  // namespace core

namespace detail {
/// No gradient is computed below the first group whose parameters train. All readers of a group that trains do so, too, so that
/// the first one to store its gradient is the same as in the plan. group_of: of each node; frozen: of each slot.
[[gnu::cold]] inline std::vector<trained_group> trained_groups(std::span<const kernel_group> groups,
                                                               std::span<const int> group_of,
                                                               std::span<const parameter_slot> slots,
                                                               std::span<const bool> frozen) {
  std::vector<trained_group> out(groups.size());
  std::vector<int> found(groups.size());  // parameters of a group are in the order of their slots
  for (std::size_t s = 0; s < slots.size(); ++s) {
    const auto g = std::size_t(group_of[std::size_t(slots[s].node)]);
    const bool trains = slots[s].what.trainable && !frozen[s];
    out[g].parameters[found[g]++] = trains;
    out[g].trains = out[g].trains || trains;
  }
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (int k = 0; k < groups[g].arity; ++k)
      if (const int from = groups[g].input[k]; from >= 0) out[g].trains = out[g].trains || out[std::size_t(from)].trains;
  return out;
}
}  // namespace detail

namespace core {
/// layout: of the items of the program, whose nodes are those of the plan, unlike the nodes of layout_of_program if there are
/// several outputs. frozen: of each slot, whether it is not trained although it is trainable.
template <int N, int Count>
std::vector<trained_group> trained_groups(const detail::plan<N>& plan, const parameter_layout<Count>& layout,
                                          std::span<const bool> frozen) {
  return detail::trained_groups(std::span(plan.groups).first(std::size_t(plan.group_count)), plan.group_of,
                                std::span(layout.slots).first(std::size_t(Count)), frozen);
}
}  // namespace core

}  // namespace strata
