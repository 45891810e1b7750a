// Work that was recorded instead of being done: the content of a graph.
#pragma once
#include <cstddef>
#include <functional>
#include <strata/cuda/machine/emulated/work_counts.hpp>
#include <vector>

namespace strata::machine::detail {

/// What captured queues were asked to do: the first one, and those that wait for an event of the graph.
struct recorded_work {
  struct item {
    std::function<void()> run{};    // or
    int records = -1, awaits = -1;  // the number of an event
  };
  struct branch {
    int device;
    std::vector<item> all{};
    work_counts counts{};
  };
  std::vector<branch> branches;
  int events = 0;
  bool is_over = false;  // nothing can be added

  /// Whether the first queue waits, also by others, for all that is on the others.
  bool is_joined() const {
    struct place {
      std::size_t branch, end;
    };
    std::vector<place> recorded(std::size_t(events), place{});
    for (std::size_t b = 0; b < branches.size(); ++b)
      for (std::size_t i = 0; i < branches[b].all.size(); ++i)
        if (const int e = branches[b].all[i].records; e >= 0) recorded[std::size_t(e)] = {b, i + 1};
    std::vector<std::size_t> awaited(branches.size());
    awaited[0] = branches[0].all.size();
    for (bool changes = true; changes;) {
      changes = false;
      for (std::size_t b = 0; b < branches.size(); ++b)
        for (std::size_t i = 0; i < awaited[b]; ++i)
          if (const int e = branches[b].all[i].awaits; e >= 0) {
            const place& at = recorded[std::size_t(e)];
            if (awaited[at.branch] >= at.end) continue;
            awaited[at.branch] = at.end;
            changes = true;
          }
    }
    for (std::size_t b = 0; b < branches.size(); ++b)
      if (awaited[b] < branches[b].all.size()) return false;
    return true;
  }
};

}  // namespace strata::machine::detail
