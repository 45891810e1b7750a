// The state of a queue of an emulated device: the work that waits on it, or the capture that records its work.
#pragma once
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <strata/cuda/machine/emulated/recorded_work.hpp>

namespace strata::machine::detail {

/// One piece of work on a queue, such as a kernel, a copy, a record of an event or a wait for one.
struct work {
  std::function<bool()> is_ready;  // whether it may run now; if empty, it always may
  std::function<void()> run;       // if empty, there is nothing to run: the work is only a wait
  bool is_signal = false;          // it lets other queues go on, so it runs even if the device is lost
  bool waits_for_others = false;   // what is_ready() returns may depend on other processes
};

/// The state of one queue. All copies of a `queue` share it.
struct queue_state {
  int device;
  std::deque<work> waiting{};                 // the work that was enqueued and has not run yet, in order
  std::shared_ptr<recorded_work> recorded{};  // the capture that records the work of this queue; null if there is none
  std::size_t branch = 0;                     // the index of this queue's branch in `recorded`
};

}  // namespace strata::machine::detail
