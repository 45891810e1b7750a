// The work that waits on a queue.
#pragma once
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <strata/cuda/machine/emulated/recorded_work.hpp>

namespace strata::machine::detail {

struct work {
  std::function<bool()> is_ready;  // empty: it is
  std::function<void()> run;
  bool is_signal = false;         // for another queue: it is sent even if the device is lost
  bool waits_for_others = false;  // is_ready() may depend on other processes
};

struct queue_state {
  int device;
  std::deque<work> waiting{};
  std::shared_ptr<recorded_work> recorded{};  // while it is captured
  std::size_t branch = 0;                     // of recorded
};

}  // namespace strata::machine::detail
