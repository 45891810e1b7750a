// What a GPU refuses while a queue is captured.
#pragma once
#include <strata/base/text.hpp>
#include <strata/cuda/machine/emulated/machine_state.hpp>
#include <strata/cuda/machine/emulated/queue_state.hpp>

namespace strata::machine::detail {

/// Lets the capture of the calling thread fail, if there is one, for calls that cannot throw. `what` names in the text what a GPU
/// refuses then. Captures of other threads do not matter, as with cudaStreamCaptureModeThreadLocal in hardware.cuh.
inline void spoil_capture(const char* what) {
  const auto locked = machine_state::the().lock();
  if (const auto own = machine_state::the().capture_of_this_thread())
    own->failure = strata::detail::text_of({what, " while a queue is captured"});
}
/// Throws strata_error if the calling thread captures a queue, and lets the capture fail. `what` is as for spoil_capture.
inline void refuse_while_captured(const char* what) {
  const auto locked = machine_state::the().lock();
  if (const auto own = machine_state::the().capture_of_this_thread())
    own->fail(strata::detail::text_of({what, " while a queue is captured"}));
}
/// Throws strata_error if this queue is captured, by any thread, and lets the capture fail. `what` names in the text what
/// cannot be part of a graph.
inline void refuse_in_graph(const queue_state& q, const char* what) {
  const auto locked = machine_state::the().lock();
  if (q.recorded) q.recorded->fail(strata::detail::text_of({what, " cannot be part of a graph"}));
}

}  // namespace strata::machine::detail
