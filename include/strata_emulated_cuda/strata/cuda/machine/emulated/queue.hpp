// Queues of emulated devices, and how the host waits for one.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <strata/cuda/machine/emulated/capture_rules.hpp>
#include <strata/cuda/machine/emulated/machine_state.hpp>
#include <strata/cuda/machine/emulated/queue_state.hpp>
#include <strata/cuda/machine/emulated/work_counts.hpp>
#include <thread>
#include <utility>

namespace strata::machine {

/// Work that a device does in order. Copies of a queue are the same queue. When the last of them is gone, the device does the
/// work that is left, see machine_state::finish.
class queue {
  struct owner {
    std::shared_ptr<detail::queue_state> state;
    std::shared_ptr<void> library_handle;
    explicit owner(int device) : state(detail::machine_state::the().make_queue(device)) {}
    owner(const owner&) = delete;
    owner& operator=(const owner&) = delete;
    ~owner() { detail::machine_state::the().finish(*state); }
  };
  std::shared_ptr<owner> owner_;

 public:
  /// Makes an object without a queue, which may only be copied, assigned and destroyed.
  queue() = default;
  /// Makes a queue of the device with that index. Throws strata_error if there is no such device.
  explicit queue(int device) : owner_(std::make_shared<owner>(device)) {}
  /// The index of its device.
  int device() const { return owner_->state->device; }
  /// What a library needs to put work on the queue; the library sets it.
  std::shared_ptr<void>& library_handle() const { return owner_->library_handle; }
  /// The state of the queue. Only the emulation has it.
  detail::queue_state& state() const { return *owner_->state; }
};

namespace detail {
/// Adds `how_many` to one of the counts of the queue's device or, if the queue is captured, of its branch. Throws device_lost
/// if the device is lost; `during` is for its text. Throws strata_error if there is no such device.
inline void count(const queue& q, long work_counts::* what, const char* during, long how_many = 1) {
  const auto locked = machine_state::the().lock();
  machine_state::the().refuse_lost(q.device(), during);
  detail::queue_state& state = q.state();
  work_counts& to = state.recorded ? state.recorded->branches[state.branch].counts : machine_state::the().counts(q.device());
  to.*what += how_many;
}
/// Puts a kernel or a copy on a queue.
inline void enqueue(const queue& q, std::function<void()> run) { machine_state::the().enqueue(q.state(), {{}, std::move(run)}); }
}  // namespace detail

/// Waits until all work of the queue is done. Throws device_lost if the device is lost, strata_error if the queue is
/// captured, if the calling thread captures another one or if each queue waits for another one, and what the work throws.
inline void wait(const queue& q) {
  detail::refuse_in_graph(q.state(), "a wait of the host");
  detail::refuse_while_captured("a wait of the host");
  detail::count(q, &work_counts::waits, "the work of a step");
  while (!detail::machine_state::the().work_off(q.state())) std::this_thread::sleep_for(std::chrono::microseconds(20));
  detail::machine_state::the().refuse_lost(q.device(), "the work of a step");
}
/// Does the work of the queue as far as it does not depend on other processes. Returns whether all of it is done. Throws
/// device_lost if the device is lost, strata_error if the queue is captured, if the calling thread captures another one
/// or if each queue waits for another one, and what the work throws.
inline bool is_done(const queue& q) {
  detail::refuse_in_graph(q.state(), "a query of the host");
  detail::refuse_while_captured("a query of the host");
  detail::machine_state::the().refuse_lost(q.device(), "the work of a step");
  const bool done = detail::machine_state::the().work_off(q.state());
  detail::machine_state::the().refuse_lost(q.device(), "the work of a step");
  return done;
}

}  // namespace strata::machine
