// Captures work of queues: records it as a graph instead of doing it.
#pragma once
#include <memory>
#include <strata/cuda/machine/emulated/graph.hpp>
#include <strata/cuda/machine/emulated/machine_state.hpp>
#include <strata/cuda/machine/emulated/queue.hpp>
#include <strata/cuda/machine/emulated/queue_state.hpp>
#include <strata/cuda/machine/emulated/recorded_work.hpp>

namespace strata::machine {

/// Calls f() and returns the work that f() enqueues on `q` as a graph, without doing it. Work on other queues, of any device,
/// is part of the graph if these queues wait for `q` (see order); `q` must wait for them before f() returns. f() must not
/// allocate memory, and the host must not wait in it. Addresses and all other arguments of kernels are the same in each launch.
/// Throws strata::error if one of these rules is broken, if this thread captures already or if another one captures `q`,
/// device_lost if the device is lost, and what f() throws. The capture ends in any case.
template <class F>
graph capture(const queue& q, F&& f) {
  struct recording {
    std::shared_ptr<detail::recorded_work> work;
    explicit recording(detail::queue_state& on) : work(detail::machine_state::the().begin_capture(on)) {}
    recording(const recording&) = delete;
    recording& operator=(const recording&) = delete;
    ~recording() { detail::machine_state::the().end_capture(work); }
  } now(q.state());
  f();
  detail::machine_state::the().refuse_failed(*now.work);
  return graph(now.work);
}

}  // namespace strata::machine
