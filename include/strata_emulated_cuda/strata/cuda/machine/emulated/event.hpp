// Events: places in the work of a queue, for which other queues and the host can wait.
#pragma once
#include <chrono>
#include <memory>
#include <strata/cuda/machine/emulated/capture_rules.hpp>
#include <strata/cuda/machine/emulated/machine_state.hpp>
#include <strata/cuda/machine/emulated/queue.hpp>
#include <strata/cuda/machine/emulated/recorded_work.hpp>
#include <strata/cuda/machine/emulated/work_counts.hpp>
#include <thread>
#include <utility>

namespace strata::machine {

/// A place in the work of a queue, for which other queues and the host can wait.
class event {
  struct place {
    queue on;
    // Whether the work before it is done. Work on queues shares this flag only, not the place: a queue would own itself.
    std::shared_ptr<bool> done = std::make_shared<bool>(false);
    std::shared_ptr<detail::recorded_work> graph{};  // the capture that it is a part of, or null
    int number = -1;                                 // its number in that capture
  };
  std::shared_ptr<place> place_;  // null: it was never recorded, and nothing waits for it

 public:
  /// Sets the place: after all work that is on the queue now. It replaces the place of an earlier call.
  void record(const queue& q) {
    auto& all = detail::machine_state::the();
    const auto locked = all.lock();
    auto now = std::make_shared<place>(place{.on = q, .graph = q.state().recorded, .number = all.record(q.state())});
    if (!now->graph) all.enqueue(q.state(), {{}, [done = now->done] { *done = true; }, true});
    place_ = std::move(now);
  }
  /// Makes work that is enqueued on `later` from now on begin after this place. If the place is part of a capture, `later`
  /// becomes part of it, too. Does nothing if record was never called. Throws strata_error if that capture has ended, or
  /// if `later` is captured and the place is not part of the same capture.
  void hold(const queue& later) const {
    if (place_ && place_->graph) return detail::machine_state::the().join(later.state(), place_->graph, place_->number);
    if (place_) detail::machine_state::the().enqueue(later.state(), {[done = place_->done] { return *done; }, {}});
  }
  /// Waits until the work before this place is done. Throws device_lost if the device is lost, strata_error if the place
  /// or its queue is captured, if the calling thread captures another one or if each queue waits for another one, and what the
  /// work throws.
  void wait() const {
    if (!place_) return;
    if (place_->graph) {
      const auto locked = detail::machine_state::the().lock();
      place_->graph->fail("the host waits for an event of a graph");
    }
    detail::refuse_in_graph(place_->on.state(), "a wait of the host");
    detail::refuse_while_captured("a wait of the host");
    detail::count(place_->on, &work_counts::event_waits, "the work of a step");
    while (!detail::machine_state::the().work_off(place_->on.state(), [done = place_->done] { return *done; }))
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    detail::machine_state::the().refuse_lost(place_->on.device(), "the work of a step");
  }
};

/// Makes work that is enqueued on `later` from now on begin after all work that is on `earlier` now. Throws as event::hold
/// does.
inline void order(const queue& earlier, const queue& later) {
  event done;
  done.record(earlier);
  done.hold(later);
}

}  // namespace strata::machine
