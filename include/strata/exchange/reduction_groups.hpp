// The processes that add gradients up together: all of them, or first those of each machine and then one of each machine.
#pragma once
#include <strata/concepts/communicator.hpp>
#include <strata/network/leaves.hpp>
#include <vector>

namespace strata::core {

/// Processes that share the work of one sum. When it begins, each has sums over the leaves of some processes, itself among them.
struct reduction_group {
  struct member {
    int rank;
    int first, last;  // processes whose leaves it has added up
  };
  std::vector<member> members{};  // in the order of their leaves
  int own = 0;                    // which of them is this process

  int size() const { return int(members.size()); }
  leaf_range leaves_of(int i, int leaves, int processes) const {
    const member& m = members[std::size_t(i)];
    return {share_of(leaves, m.first, processes).begin, share_of(leaves, m.last, processes).end};
  }
};

/// The number of neighbouring ranks on each machine, if it is the same for all; 1 otherwise.
template <communicator C>
int processes_per_machine(const C& c) {
  if constexpr (knows_machines<C>) {
    int n = 1;
    while (n < c.size() && c.machine_of(n) == c.machine_of(0)) ++n;
    if (c.size() % n != 0) return 1;
    for (int r = 0; r < c.size(); ++r)
      for (int other = 0; other < c.size(); ++other)
        if ((c.machine_of(r) == c.machine_of(other)) != (r / n == other / n)) return 1;
    return n;
  }
  return 1;
}

/// The groups of one sum, in the order in which they add. Between machines, processes with the same number on their machines add
/// up the sums of these.
template <communicator C>
std::vector<reduction_group> reduction_groups(const C& c) {
  const int near = processes_per_machine(c), machines = c.size() / near;
  reduction_group inside, between;
  if (near == 1 || machines == 1) {
    for (int r = 0; r < c.size(); ++r) inside.members.push_back({r, r, r});
    inside.own = c.rank();
    return {inside};
  }
  const int machine = c.rank() / near;
  inside.own = c.rank() % near;
  between.own = machine;
  for (int r = machine * near; r < (machine + 1) * near; ++r) inside.members.push_back({r, r, r});
  for (int m = 0; m < machines; ++m) between.members.push_back({m * near + inside.own, m * near, (m + 1) * near - 1});
  return {inside, between};
}

}  // namespace strata::core
