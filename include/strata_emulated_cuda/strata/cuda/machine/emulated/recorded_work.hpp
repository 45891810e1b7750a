// Work that was recorded while queues were captured: the content of a graph.
#pragma once
#include <cstddef>
#include <functional>
#include <strata/base/error.hpp>
#include <strata/cuda/machine/emulated/work_counts.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace strata::machine::detail {

/// Work that was recorded in one capture. The first branch is that of the queue that capture() was called for. Another queue
/// gets a branch when it waits for an event that was recorded in the same capture.
struct recorded_work {
  /// One of three things: a kernel or a copy to run, an event to record, or an event to wait for.
  struct item {
    std::function<void()> run{};
    int records = -1, awaits = -1;  // the number of that event in this capture, or -1
  };
  /// What one queue was asked to do, in order.
  struct branch {
    int device;
    std::vector<item> all{};
    work_counts counts{};  // what a launch of the graph adds to the counts of the device
  };
  std::vector<branch> branches;
  std::thread::id thread = std::this_thread::get_id();  // the thread that called capture()
  int events = 0;                                       // the number of events that were recorded; they are numbered from 0
  bool is_over = false;                                 // the capture has ended: no work may be added
  std::string failure{};                                // why the capture fails when it ends; empty if it does not

  /// Throws strata_error, and lets the capture fail even if the caller catches this error: what a GPU refuses makes the
  /// whole capture invalid.
  [[noreturn]] void fail(std::string why) {
    failure = std::move(why);
    throw_error(failure);
  }

  /// Whether the first branch waits, directly or through other branches, for all work of all branches. CUDA requires it at the
  /// end of a capture.
  bool is_joined() const {
    struct place {
      std::size_t branch, end;
    };
    std::vector<place> recorded(std::size_t(events), place{});
    for (std::size_t b = 0; b < branches.size(); ++b)
      for (std::size_t i = 0; i < branches[b].all.size(); ++i)
        if (const int e = branches[b].all[i].records; e >= 0) recorded[std::size_t(e)] = {b, i + 1};
    std::vector<std::size_t> awaited(branches.size());  // how many items of each branch the first branch waits for
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
