// Graphs: work that was recorded once and is launched as one.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <strata/cuda/machine/emulated/machine_state.hpp>
#include <strata/cuda/machine/emulated/queue.hpp>
#include <strata/cuda/machine/emulated/queue_state.hpp>
#include <strata/cuda/machine/emulated/recorded_work.hpp>
#include <strata/cuda/machine/emulated/work_counts.hpp>
#include <utility>
#include <vector>

namespace strata::machine {

/// Work of one queue, and of those that wait for it, that was recorded once and is launched as one.
class graph {
  std::shared_ptr<const detail::recorded_work> work_;

 public:
  graph() = default;
  explicit graph(std::shared_ptr<const detail::recorded_work> work) : work_(std::move(work)) {}
  explicit operator bool() const { return work_ != nullptr; }
  /// The work of other queues is not on these: each branch is a queue of its own.
  void launch(const queue& q) const {
    detail::machine_state::refuse_in_graph(q.state(), "a launch of another graph");
    detail::count(q, &work_counts::graphs, "a graph");
    auto& all = detail::machine_state::the();
    const auto locked = all.lock();
    const auto has_passed = std::make_shared<std::vector<char>>(std::size_t(work_->events));
    std::vector<std::shared_ptr<detail::queue_state>> others;
    for (const auto& branch : work_->branches) {
      all.counts(branch.device) += branch.counts;
      const bool is_first = &branch == &work_->branches.front();
      if (!is_first) others.push_back(all.make_queue(branch.device));
      detail::queue_state& on = is_first ? q.state() : *others.back();
      for (const auto& each : branch.all)
        if (each.awaits >= 0)
          all.enqueue(on, {[=, e = std::size_t(each.awaits)] { return (*has_passed)[e] != 0; }, {}});
        else if (each.records >= 0)
          all.enqueue(on, {{}, [=, e = std::size_t(each.records)] { (*has_passed)[e] = 1; }, true});
        else
          all.enqueue(on, {{}, each.run});
    }
    const auto are_empty = [others] {
      return std::ranges::all_of(others, [](const auto& each) { return each->waiting.empty(); });
    };
    if (!others.empty()) all.enqueue(q.state(), {are_empty, {}});  // they live until then
  }
};

}  // namespace strata::machine
