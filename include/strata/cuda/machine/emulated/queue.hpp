// Queues of emulated devices, and how the host waits for one.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <strata/cuda/machine/emulated/machine_state.hpp>
#include <strata/cuda/machine/emulated/queue_state.hpp>
#include <strata/cuda/machine/emulated/work_counts.hpp>
#include <thread>
#include <utility>

namespace strata::machine {

class queue {
  std::shared_ptr<detail::queue_state> state_;

 public:
  queue() = default;
  explicit queue(int device) : state_(detail::machine_state::the().make_queue(device)) {}
  int device() const { return state_->device; }
  detail::queue_state& state() const { return *state_; }
};

namespace detail {
inline void count(const queue& q, long work_counts::* what, const char* during, long how_many = 1) {
  const auto locked = machine_state::the().lock();
  machine_state::the().refuse_lost(q.device(), during);
  detail::queue_state& state = q.state();
  work_counts& to = state.recorded ? state.recorded->branches[state.branch].counts : machine_state::the().counts(q.device());
  to.*what += how_many;
}
inline void enqueue(const queue& q, std::function<void()> run) { machine_state::the().enqueue(q.state(), {{}, std::move(run)}); }
}  // namespace detail

inline void wait(const queue& q) {
  detail::machine_state::refuse_in_graph(q.state(), "a wait of the host");
  detail::count(q, &work_counts::waits, "the work of a step");
  while (!detail::machine_state::the().work_off(q.state())) std::this_thread::sleep_for(std::chrono::microseconds(20));
  detail::machine_state::the().refuse_lost(q.device(), "the work of a step");
}
/// Whether all work is done. Does not wait for other processes.
inline bool is_done(const queue& q) {
  detail::machine_state::the().refuse_lost(q.device(), "the work of a step");
  const bool done = detail::machine_state::the().work_off(q.state());
  detail::machine_state::the().refuse_lost(q.device(), "the work of a step");
  return done;
}

}  // namespace strata::machine
