// The result of a call to another process.
#pragma once
#include <cstdint>
#include <string>

namespace strata::detail {

enum class status_code : std::uint8_t {
  ok,
  cancelled,
  invalid_argument,
  deadline_exceeded,
  not_found,
  resource_exhausted,
  failed_precondition,
  aborted,
  out_of_range,
  unimplemented,
  unavailable,      // there is no connection
  unauthenticated,  // one of the sides does not let the other in
};
inline constexpr status_code last_status_code = status_code::unauthenticated;

struct call_status {
  status_code code = status_code::ok;
  std::string text{};       // why the call has failed
  bool has_reason = false;  // without a connection: the host is unknown, what listens is silent, or a side is not let in

  bool ok() const { return code == status_code::ok; }
  bool is_without_connection() const { return code == status_code::unavailable || code == status_code::unauthenticated; }
};

}  // namespace strata::detail
