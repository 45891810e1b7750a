// The connection to a server: each side proves itself before the other one reads its messages. Needs OpenSSL and protozero.
// needs: openssl protozero
#pragma once
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <strata/base/text.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/control/admission.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/net/byte_stream.hpp>
#include <strata/net/call_status.hpp>
#include <strata/net/dial.hpp>
#include <strata/net/endpoint.hpp>
#include <strata/net/message_connection.hpp>
#include <strata/net/message_link.hpp>
#include <strata/net/tls_stream.hpp>
#include <string>
#include <utility>

namespace strata::detail {

/// The wait of a process as text, with the reason if there is one.
inline std::string with_reason(const std::string& what, const call_status& why) {
  return why.has_reason ? text_of({what, ": ", why.text}) : what;
}

/// Distinguishes a server that is gone from one that cannot be reached for a while. Where no process listens any more, the system
/// refuses each connection at once; a network that is down does not answer.
class refused_connections {
  using time = std::chrono::steady_clock::time_point;
  time since_ = time::max();

 public:
  static bool is_one(const call_status& status) { return status.text.find("onnection refused") != std::string::npos; }
  /// The result of one attempt.
  void add(const call_status& status, time now) { since_ = is_one(status) ? std::min(since_, now) : time::max(); }
  /// 500 ms are time for five attempts: the pauses between them grow.
  bool are_final(time now) const { return since_ != time::max() && now - since_ >= std::chrono::milliseconds(500); }
};

/// The connection to one server, which may not be there yet, or be restarted. It is opened when a call needs it. Thread-safe.
class server_connection {
  using clock = std::chrono::steady_clock;

 public:
  struct attempt {
    std::shared_ptr<message_connection> open{};  // null: there is no connection
    call_status why{};                           // unavailable, or unauthenticated if one of the sides does not let the other in
  };

  /// Throws strata_error if the address is open to other machines without a proof.
  server_connection(endpoint where, const control_options& options, std::size_t largest_message)
      : where_(std::move(where)), admission_(options), largest_message_(largest_message) {
    admission_.refuse_if_open(where_);
  }

  /// The current connection, or a new one if that has ended. An attempt takes at most 2 s. After a failed one, calls fail at once
  /// for the time that it took, at most 500 ms: a process that ends notifies several others.
  attempt open(clock::time_point deadline) {
    const std::lock_guard lock(mutex_);
    if (now_ && !now_->has_ended()) return {now_, {}};
    const auto began = clock::now();
    if (began < next_attempt_) return {nullptr, why_};
    try {
      connect(std::min(deadline, began + most_for_one_attempt));
      return {now_, {}};
    } catch (const not_admitted& e) {
      why_ = {status_code::unauthenticated, e.what(), true};
    } catch (const unknown_host& e) {
      why_ = {status_code::unavailable, e.what(), true};
    } catch (const silent_listener& e) {
      why_ = {status_code::unavailable, e.what(), true};
    } catch (const std::exception& e) {  // also std::system_error, where the system starts no thread
      why_ = {status_code::unavailable, e.what()};
    }
    const auto now = clock::now();
    next_attempt_ = now + std::min(now - began, most_pause);
    return {nullptr, why_};
  }
  const endpoint& where() const { return where_; }

 private:
  static constexpr std::chrono::seconds most_for_one_attempt{2};
  static constexpr clock::duration most_pause = std::chrono::milliseconds(500);
  static constexpr unsigned time_to_take = 30'000;  // milliseconds, for the other side to take what was sent
  class not_admitted : public communication_error {
    using communication_error::communication_error;
  };
  class silent_listener : public communication_error {
    using communication_error::communication_error;
  };

  void connect(clock::time_point deadline) {
    auto [socket, at] = dial(where_, deadline);
    ::setsockopt(socket.number(), IPPROTO_TCP, TCP_USER_TIMEOUT, &time_to_take, sizeof time_to_take);
    const protection how = admission_.of(at, [&at = at] { return listener_is_of_same_user(at); });
    if (how == protection::refused)
      throw not_admitted(text_of({"the process that listens at ", to_string(where_),
                                  " is not known to belong to this user: give all processes the same secret in STRATA_SECRET"}));
    const tls_stream* encrypted = nullptr;
    std::unique_ptr<byte_stream> stream;
    if (how == protection::tls) {
      auto made = std::make_unique<tls_stream>(std::move(socket), admission_.identity(), false, where_.host);
      encrypted = made.get();
      stream = std::move(made);
      for (stream_progress p; (p = stream->greet()).waits_for != 0 || p.is_broken || p.is_closed;) {
        if (p.waits_for == 0) throw_refusal(*encrypted, p.is_closed ? "closed" : stream->why_broken());
        if (!wait_for_socket(stream->socket(), p.waits_for, deadline))
          throw communication_error(text_of({to_string(where_), " does not answer"}));
      }
    } else {
      stream = std::make_unique<plain_stream>(std::move(socket));
    }
    // A server speaks once it has let this process in. A stopped process accepts connections, too.
    auto link = std::make_unique<message_link>(std::move(stream), false, largest_message_);
    for (link->flush(), (void)link->receive(); !link->is_greeted(); (void)link->receive()) {
      if (link->has_ended()) {
        if (link->why() == message_link::other_protocol) throw not_admitted(text_of({to_string(where_), ' ', link->why()}));
        if (encrypted) throw_refusal(*encrypted, link->why());
        throw not_admitted(
            text_of({to_string(where_), " does not admit this process: does it have the secret of the training?"}));
      }
      if (wait_for_socket(link->socket(), POLLIN, deadline)) continue;
      if (encrypted) throw communication_error(text_of({to_string(where_), " does not answer"}));
      throw silent_listener(text_of({to_string(where_), " accepts connections but does not respond: it hangs, or has no room"}));
    }
    now_ = std::make_shared<message_connection>(std::move(link));
  }
  [[noreturn]] void throw_refusal(const tls_stream& stream, const std::string& why) const {
    if (!stream.is_refused())
      throw communication_error(
          text_of({to_string(where_), ": ", why, " before it admitted this process: do both have the same secret?"}));
    throw not_admitted(
        text_of({to_string(where_), admission_.needs_certificate() ? ": " : " has another secret, or none: ", why}));
  }

  const endpoint where_;
  const admission admission_;
  const std::size_t largest_message_;
  std::mutex mutex_;
  std::shared_ptr<message_connection> now_;
  clock::time_point next_attempt_{};
  call_status why_;  // of the last attempt that failed
};

}  // namespace strata::detail
