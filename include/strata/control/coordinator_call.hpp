// A request to the coordinator that has no answer yet.
// needs: openssl protozero
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <strata/control/control_messages.hpp>
#include <strata/control/member.hpp>
#include <strata/control/message_server.hpp>
#include <strata/net/envelope.hpp>
#include <string>

namespace strata::control {

struct coordinator_call {
  std::shared_ptr<detail::served_call> to;
  bool knows_failure = false;      // of its generation; a heartbeat
  std::uint64_t knows_notice = 0;  // likewise
  member who{};                    // of a late process
  std::chrono::steady_clock::time_point due =
      std::chrono::steady_clock::time_point::max();  // when it gets an answer at the latest
  std::string awaited{};                             // the key whose value it waits for
  get_all_request wanted{};                          // of get_all
  int found = 0;                                     // the first values that get_all wants are there

  const std::string& method() const { return to->method; }
  const wire::sender& from() const { return to->from; }
};

}  // namespace strata::control
