// Deadlines of gRPC calls. Needs gRPC.
// needs: grpc
#pragma once
#include <grpc/support/time.h>

#include <chrono>

namespace strata::detail {

/// The deadline after `time` on the steady clock: setting the time of day, by hand or by NTP, neither ends nor extends a wait.
inline gpr_timespec deadline_in(std::chrono::nanoseconds time) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(time.count(), GPR_TIMESPAN));
}

}  // namespace strata::detail
