// The transfers between stages that have been enqueued in a step, and the events for which queues wait.
#pragma once
#include <algorithm>
#include <cstddef>
#include <strata/cuda/machine/machine.hpp>
#include <strata/program/stages/stage_plan.hpp>
#include <type_traits>
#include <vector>

namespace strata::core {

/// A micro-batch is given by its number. Stages of one place have one queue, which does not wait for itself: between_places is
/// false there.
template <class Program, class Backend>
class transfer_events {
  static constexpr const auto& table = Backend::split::table;
  static constexpr const auto& plan = stage_plan_of<Program, Backend>;
  static constexpr int stage_count = std::remove_cvref_t<decltype(table)>::stages;
  static constexpr int ring = [] {
    int most = 1;
    for (int s = 0; s < stage_count; ++s) most = std::max(most, table.in_flight(s));
    return most + 1;
  }();

  /// The events of some consecutive micro-batches, for each transfer or stage.
  class event_rings {
    std::vector<machine::event> all_;

   public:
    explicit event_rings(int count) : all_(std::size_t(count) * ring) {}
    machine::event& at(int which, int number) { return all_[std::size_t(which) * ring + std::size_t(number) % ring]; }
  };
  event_rings sent_events_{plan.transfer_count}, released_events_{stage_count};
  int sent_[plan.transfer_count + 1] = {}, released_[stage_count] = {};  // how many micro-batches

 public:
  void begin_step() {
    std::ranges::fill(sent_, 0);
    std::ranges::fill(released_, 0);
  }
  /// Records that the work on `from` so far sends a micro-batch.
  void sent(int transfer, int number, const machine::queue& from, bool between_places) {
    if (between_places) sent_events_.at(transfer, number).record(from);
    ++sent_[transfer];
  }
  /// Makes `to` wait until a micro-batch has come. False: the work that sends it has not been enqueued.
  bool receive(int transfer, int number, const machine::queue& to, bool between_places) {
    if (sent_[transfer] <= number) return false;
    if (between_places) sent_events_.at(transfer, number).hold(to);
    return true;
  }
  /// Records that a stage is done with a micro-batch after the work on `on` so far.
  void release(int stage, int number, const machine::queue& on) {
    released_events_.at(stage, number).record(on);
    ++released_[stage];
  }
  /// Makes `from` wait until a stage is done with the first `count` micro-batches. Returns false if the work that uses them last
  /// has not been enqueued.
  bool wait_for_release(int stage, int count, const machine::queue& from, bool between_places) {
    if (released_[stage] < count) return false;
    if (count > 0 && between_places) released_events_.at(stage, count - 1).hold(from);
    return true;
  }
};

}  // namespace strata::core
