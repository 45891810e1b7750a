// Captures work of queues: records it as a graph instead of doing it.
#pragma once
#include <memory>
#include <strata/base/error.hpp>
#include <strata/cuda/machine/emulated/capture_rules.hpp>
#include <strata/cuda/machine/emulated/graph.hpp>
#include <strata/cuda/machine/emulated/machine_state.hpp>
#include <strata/cuda/machine/emulated/queue.hpp>
#include <strata/cuda/machine/emulated/recorded_work.hpp>

namespace strata::machine {

/// Calls f() and returns the work that f() enqueues on `q` as a graph, without doing it. Work on other queues, of any device,
/// is part of the graph if these queues wait for `q` (see order); `q` must wait for them before f() returns. f() must not
/// allocate or release memory, pinned memory included, and the host must not wait or ask whether a queue is done in it.
/// Addresses and all other arguments of kernels are the same in each launch. Throws strata_error if one of these rules is
/// broken, even if f() catches the error, if this thread captures already or if another one captures `q`, device_lost if the
/// device is lost, and what f() throws. The capture ends in any case.
template <class F>
graph capture(const queue& q, F&& f) {
  struct recording {
    std::shared_ptr<detail::recorded_work> work;
    explicit recording(const queue& on) {
      auto& all = detail::machine_state::the();
      const auto locked = all.lock();
      detail::refuse_while_captured("a capture");
      all.refuse_lost(on.device(), "a capture");
      work = all.begin_capture(on.state());
      ++all.counts(on.device()).captures;
    }
    recording(const recording&) = delete;
    recording& operator=(const recording&) = delete;
    ~recording() { detail::machine_state::the().end_capture(work); }
  } now(q);
  f();
  const auto locked = detail::machine_state::the().lock();
  if (!now.work->failure.empty()) throw_error(now.work->failure);
  if (!now.work->is_joined()) throw_error("a queue that is captured does not wait for another queue of the graph");
  return graph(now.work);
}

}  // namespace strata::machine
