// Steps that were captured as graphs on the queues of all GPUs of an engine, to be launched again.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <strata/cuda/engine/device_group.hpp>
#include <strata/cuda/machine/machine.hpp>
#include <utility>
#include <vector>

namespace strata::core {

class step_graphs {
 public:
  /// A step for batches of `count` samples in one of the slots, or several steps.
  struct kind {
    int count, slot, steps;
    std::uint32_t weighted;  // a bit for each array of weights, which have places in the slot
    bool by_index;           // the device gathers the batch
    bool operator==(const kind&) const = default;
  };

  /// Launches the work that enqueue() puts on all queues as a graph of the first queue, which is captured once. At most `most`
  /// kinds are kept: the one whose last launch is the longest ago is dropped, and captured again if needed.
  template <class Device, class Enqueue>
  void launch(const device_group<Device>& devices, const kind& what, Enqueue&& enqueue) {
    auto graph = std::ranges::find(all_, what, &step_graph::what);
    if (graph == all_.end()) {
      const auto on_all_queues = [&] {
        devices.first_goes_first();
        enqueue();
        devices.first_goes_last();
      };
      machine::graph made = machine::capture(devices[0].queue, on_all_queues);
      if (all_.size() == most) all_.erase(all_.begin());  // its launches go on
      graph = all_.insert(all_.end(), {what, std::move(made)});
    }
    devices.first_goes_last();
    graph->work.launch(devices[0].queue);
    std::rotate(graph, graph + 1, all_.end());
    devices.first_goes_first();
  }
  /// Drops the graphs because they refer to memory that will be freed. Waits until the last one is done.
  template <class Device>
  void drop(const device_group<Device>& devices) {
    if (all_.empty()) return;
    devices[0].wait();
    all_.clear();
  }

 private:
  static constexpr std::size_t most = 32;
  struct step_graph {
    kind what;
    machine::graph work;
  };
  std::vector<step_graph> all_;  // the one that was launched last is the last
};

}  // namespace strata::core
