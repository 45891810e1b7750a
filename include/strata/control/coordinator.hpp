// The control plane of a training: the chief serves a key/value store and watches over the members. Needs OpenSSL and protozero.
// needs: openssl protozero
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <strata/communicators/elastic.hpp>
#include <strata/control/admission.hpp>
#include <strata/control/control_messages.hpp>
#include <strata/control/coordinator_service.hpp>
#include <strata/control/message_server.hpp>
#include <strata/net/endpoint.hpp>
#include <string>
#include <thread>
#include <utility>

namespace strata::control {

/// Serves a run until it is destroyed: a key/value store, and a membership. Processes join it, send heartbeats, and leave. When
/// the run fails, every process that waits for an answer gets the reason. An elastic run continues: the living members request
/// the next generation, which begins with an empty store when all of them have requested it; messages of earlier generations are
/// refused. Late processes wait until the members form the next generation, which admits them. Malformed messages and messages of
/// other runs are refused, and the memory for all stored values is bounded.
class coordinator {
 public:
  /// `patience`: the time that a new generation waits for a living member that does not request it. `members`: the expected
  /// number of processes; 0: unknown. `places`: of a group, see generations.
  /// Throws strata_error if it cannot listen at `where`, as when the port is in use, if the address is open to other
  /// machines without a proof, or if `options.connections` is less than `members`.
  coordinator(const core::endpoint& where, std::string run, const control_options& options = {}, std::uint64_t generation = 0,
              const elastic_options& elastic = {}, std::chrono::milliseconds patience = std::chrono::seconds(30), int members = 0,
              int places = 1)
      : service_(std::move(run), generation, options, elastic, patience, places),
        server_(where, "the coordinator", service_, options, {.largest_message = largest_request, .members = members}) {
    watch_ = std::thread([this] { service_.watch(); });
  }
  ~coordinator() {
    service_.close();
    watch_.join();
  }
  coordinator(const coordinator&) = delete;
  coordinator& operator=(const coordinator&) = delete;

  /// True if a late process waits to be admitted to the next generation.
  bool late_one_waits() const { return service_.late_one_waits(); }

 private:
  static constexpr std::size_t largest_request = largest_value + (4 << 10);

  coordinator_service service_;
  detail::message_server server_;
  std::thread watch_;
};

}  // namespace strata::control
