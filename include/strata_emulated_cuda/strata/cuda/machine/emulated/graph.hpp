// A graph: work of queues that was recorded once and is launched as a whole.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <strata/cuda/machine/emulated/capture_rules.hpp>
#include <strata/cuda/machine/emulated/machine_state.hpp>
#include <strata/cuda/machine/emulated/queue.hpp>
#include <strata/cuda/machine/emulated/queue_state.hpp>
#include <strata/cuda/machine/emulated/recorded_work.hpp>
#include <strata/cuda/machine/emulated/work_counts.hpp>
#include <utility>
#include <vector>

namespace strata::machine {

/// Work of one queue, and of queues that wait for it, that was recorded once (see capture) and is launched as a whole.
class graph {
  std::shared_ptr<const detail::recorded_work> work_;

 public:
  /// Makes an empty graph, which cannot be launched.
  graph() = default;
  /// Makes the graph of a capture that has ended.
  explicit graph(std::shared_ptr<const detail::recorded_work> work) : work_(std::move(work)) {}
  /// Whether it is not empty.
  explicit operator bool() const { return work_ != nullptr; }
  /// Enqueues its work on `q`. Work that was recorded on other queues is not put on these: each branch gets a new queue, and
  /// later work on `q` begins when all branches are done. Throws device_lost if the device of `q` is lost, and
  /// strata_error if `q` is captured or if a device of the graph does not exist any more.
  void launch(const queue& q) const {
    detail::refuse_in_graph(q.state(), "a launch of another graph");
    auto& all = detail::machine_state::the();
    const auto locked = all.lock();
    for (const auto& branch : work_->branches) all.need_device(branch.device);
    detail::count(q, &work_counts::graphs, "a graph");
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
    if (!others.empty()) all.enqueue(q.state(), {are_empty, {}});  // which also keeps these queues until then
  }
};

}  // namespace strata::machine
