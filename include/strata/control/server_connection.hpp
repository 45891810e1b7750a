// gRPC over sockets that strata opens: a process proves itself before gRPC sees the connection. Needs gRPC.
// needs: grpc protozero
#pragma once
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <poll.h>
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
#include <strata/control/control_channel.hpp>
#include <strata/control/grpc_log.hpp>
#include <strata/net/dial.hpp>
#include <strata/net/endpoint.hpp>
#include <strata/net/tls_relay.hpp>
#include <string>
#include <utility>

namespace strata::detail {

/// The result of a call, or of an attempt to connect.
struct call_status : grpc::Status {
  bool has_reason = false;  // one of the sides does not let the other in, the host is unknown, or what listens is silent

  call_status(grpc::Status status = {}, bool is_reason = false)
      : grpc::Status(std::move(status)), has_reason(is_reason || error_code() == grpc::StatusCode::UNAUTHENTICATED) {}
};
inline bool is_without_connection(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE || status.error_code() == grpc::StatusCode::UNAUTHENTICATED;
}
/// The wait of a process as text, with the reason if there is one.
inline std::string with_reason(const std::string& what, const call_status& why) {
  return why.has_reason ? text_of({what, ": ", why.error_message()}) : what;
}

/// The connection to one server, which may not be there yet, or be restarted. It is opened when a call needs it. Calls keep the
/// stub that they were made with. Thread-safe.
class server_connection {
  using clock = std::chrono::steady_clock;

 public:
  using stub = std::shared_ptr<grpc::GenericStub>;
  struct attempt {
    stub calls{};       // null: there is no connection
    call_status why{};  // UNAVAILABLE, or UNAUTHENTICATED if one of the sides does not let the other in
  };

  /// Throws strata_error if the address is open to other machines without a proof.
  server_connection(endpoint where, const control_options& options, std::size_t largest_message)
      : where_(std::move(where)), admission_(options), largest_message_(largest_message) {
    limit_grpc_log();
    admission_.refuse_if_open(where_);
  }

  /// The current connection, or a new one. An attempt takes at most 2 s. After a failed one, calls fail at once for the time that
  /// it took, at most 500 ms: a process that ends notifies several others.
  attempt open(clock::time_point deadline) {
    const std::lock_guard lock(mutex_);
    if (stub_) return {stub_, {}};
    const auto began = clock::now();
    if (began < next_attempt_) return {nullptr, why_};
    try {
      connect(std::min(deadline, began + most_for_one_attempt));
      return {stub_, {}};
    } catch (const not_admitted& e) {
      why_ = grpc::Status(grpc::StatusCode::UNAUTHENTICATED, e.what());
    } catch (const unknown_host& e) {
      why_ = call_status({grpc::StatusCode::UNAVAILABLE, e.what()}, true);
    } catch (const silent_listener& e) {
      why_ = call_status({grpc::StatusCode::UNAVAILABLE, e.what()}, true);
    } catch (const std::exception& e) {  // also std::system_error, where the system starts no thread for a relay
      why_ = grpc::Status(grpc::StatusCode::UNAVAILABLE, e.what());
    }
    const auto now = clock::now();
    next_attempt_ = now + std::min(now - began, most_pause);
    return {nullptr, why_};
  }
  /// A call has found that this connection is broken. The next `open` makes another one.
  void drop(const stub& broken) {
    const std::lock_guard lock(mutex_);
    if (stub_ == broken) stub_ = nullptr;
  }
  const endpoint& where() const { return where_; }

 private:
  static constexpr std::chrono::seconds most_for_one_attempt{2};
  static constexpr clock::duration most_pause = std::chrono::milliseconds(500);
  class not_admitted : public communication_error {
    using communication_error::communication_error;
  };
  class silent_listener : public communication_error {
    using communication_error::communication_error;
  };

  void connect(clock::time_point deadline) {
    auto [socket, at] = dial(where_, deadline);
    const protection how = admission_.of(at, [&at = at] { return listener_is_of_same_user(at); });
    if (how == protection::refused)
      throw not_admitted(text_of({"the process that listens at ", to_string(where_),
                                  " is not known to belong to this user: give all processes the same secret in STRATA_SECRET"}));
    const int channel = how == protection::tls ? greeted(std::move(socket), deadline) : accepted(std::move(socket), deadline);
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, int(ping_after.count()));
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, int(ping_timeout.count()));
    arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // no limit: a call may wait for minutes
    arguments.SetMaxReceiveMessageSize(int(largest_message_));
    stub_ = std::make_shared<grpc::GenericStub>(grpc::CreateCustomInsecureChannelFromFd(to_string(where_), channel, arguments));
  }
  /// A socket whose other side proves that it belongs to the training.
  int greeted(io::file_descriptor socket, clock::time_point deadline) {
    auto stream = std::make_unique<tls_stream>(std::move(socket), admission_.identity(), false, where_.host);
    // A server speaks first, once it has let this process in.
    for (const auto step : {&tls_stream::greet, &tls_stream::await_first}) {
      for (stream_progress p; (p = (*stream.*step)()).waits_for != 0 || p.is_broken || p.is_closed;) {
        if (p.waits_for == 0) throw_refusal(*stream, p);
        if (!wait_for_socket(stream->socket(), p.waits_for, deadline))
          throw communication_error(text_of({to_string(where_), " does not answer"}));
      }
    }
    if (!relay_) relay_ = std::make_unique<tls_relay>(std::clamp(largest_message_, std::size_t(1) << 14, std::size_t(1) << 17));
    const int channel = relay_->add(std::move(stream));
    if (channel < 0) throw communication_error("this process has too many open files");
    return channel;
  }
  [[noreturn]] void throw_refusal(const tls_stream& stream, const stream_progress& p) const {
    const std::string why = p.is_closed ? "closed" : stream.why_broken();
    if (!stream.is_refused())
      throw communication_error(
          text_of({to_string(where_), ": ", why, " before it admitted this process: do both have the same secret?"}));
    throw not_admitted(
        text_of({to_string(where_), admission_.needs_certificate() ? ": " : " has another secret, or none: ", why}));
  }
  /// A socket whose other side has sent its first byte: a stopped process accepts connections, too.
  int accepted(io::file_descriptor socket, clock::time_point deadline) const {
    char first = 0;
    if (!wait_for_socket(socket.number(), POLLIN, deadline))
      throw silent_listener(
          text_of({to_string(where_),
                   " accepts connections but does not respond: it hangs, or has a STRATA_SECRET that this process lacks"}));
    if (::recv(socket.number(), &first, 1, MSG_PEEK) <= 0)
      throw not_admitted(text_of({to_string(where_), " does not admit this process: does it have the secret of the training?"}));
    return std::move(socket).release();
  }

  const endpoint where_;
  const admission admission_;
  const std::size_t largest_message_;
  std::unique_ptr<tls_relay> relay_;
  std::mutex mutex_;
  stub stub_;
  clock::time_point next_attempt_{};
  call_status why_;  // of the last attempt that failed
};

}  // namespace strata::detail
