// Connections of the control plane and of parameter servers: options, TLS, keepalive, and a call with one answer. Needs gRPC.
// needs: grpc protozero
#pragma once
#include <arpa/inet.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <strata/distribute/control/membership.hpp>
#include <strata/distribute/endpoint.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata {

/// PEM files: the authority that is trusted, and the certificate and key of this process. Both sides show their certificates. The
/// certificate of a server has to name the host or address under which the others reach it.
struct mutual_tls {
  std::string authority, certificate, key;
};

struct control_options {
  std::optional<mutual_tls> tls{};
  bool unprotected = false;  // allows addresses other than loopback without TLS: only on a network that you trust
  int connections = 512;     // that a server keeps open, of about 30 KB each; further ones wait. At least one per process
  heartbeat_options heartbeat{};
  /// The coordinator calls it, on a thread of its own, with a sentence about the process for which the others wait.
  std::function<void(const std::string&)> on_slow_process = [](const std::string& what) { std::clog << what + '\n'; };
  /// Every process calls it while it waits for others before a training begins: after 2, 4, 8, ... s.
  std::function<void(const std::string&)> on_waiting = [](const std::string& what) { std::clog << what + '\n'; };
};

namespace detail {
inline std::string pem_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file || text.empty()) throw_error("cannot read " + path + ", or the file is empty");
  if (text.find("-----BEGIN ") == text.npos || text.find("-----END ") == text.npos)  // gRPC would only log it
    throw_error(path + " is not a PEM file, or is cut off");
  return text;
}

/// Looks at addresses, not at how a name begins: 127.0.0.1.example.org is another machine.
inline bool is_loopback(const std::string& host) {
  in_addr four{};
  in6_addr six{};
  if (::inet_pton(AF_INET, host.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  if (::inet_pton(AF_INET6, host.c_str(), &six) == 1) return IN6_IS_ADDR_LOOPBACK(&six);
  return same_host(host, "localhost");
}

inline void refuse_unprotected(const endpoint& where, const control_options& options) {
  if (!options.tls && !options.unprotected && !is_loopback(where.host))
    throw_error("the control plane at " + to_string(where) +
                " can be reached from other machines: give control_options.tls, or set "
                "control_options.unprotected on a network that you trust");
}

inline std::shared_ptr<grpc::ServerCredentials> server_credentials(const control_options& options) {
  if (!options.tls) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions ssl(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  ssl.pem_root_certs = pem_text(options.tls->authority);
  ssl.pem_key_cert_pairs.push_back({pem_text(options.tls->key), pem_text(options.tls->certificate)});
  return grpc::SslServerCredentials(ssl);
}
inline std::shared_ptr<grpc::ChannelCredentials> client_credentials(const control_options& options) {
  if (!options.tls) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials({pem_text(options.tls->authority), pem_text(options.tls->key), pem_text(options.tls->certificate)});
}

/// Keepalive pings, which detect that the other process or the network is gone.
inline constexpr std::chrono::milliseconds ping_after{2000}, ping_timeout{2000};

/// A channel to a server that may be restarted. Throws strata::error if the address is open to other machines without TLS.
inline std::shared_ptr<grpc::Channel> watched_channel(const endpoint& where, const control_options& options,
                                                      std::size_t largest_message) {
  refuse_unprotected(where, options);
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, int(ping_after.count()));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, int(ping_timeout.count()));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // In spite of its name, this is how long one attempt to connect may take.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(int(largest_message));
  return grpc::CreateCustomChannel(to_string(where), client_credentials(options), arguments);
}

/// One request and its answer, within the deadline of the context.
inline grpc::Status unary_call(grpc::GenericStub& stub, grpc::ClientContext& context, const std::string& method,
                               const grpc::ByteBuffer& message, grpc::ByteBuffer& answer) {
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareUnaryCall(&context, method, message, &queue);
  call->StartCall();
  grpc::Status status;
  call->Finish(&answer, &status, &status);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return status;
}

/// Tells a server that is gone from one that cannot be reached for a while. Where no process listens any more, the system refuses
/// each connection at once; a network that is down does not answer.
class refused_connections {
  using time = std::chrono::steady_clock::time_point;
  time since_ = time::max();

 public:
  static bool is_one(const grpc::Status& status) { return status.error_message().find("onnection refused") != std::string::npos; }
  /// The result of one attempt.
  void add(const grpc::Status& status, time now) { since_ = is_one(status) ? std::min(since_, now) : time::max(); }
  /// 500 ms are time for five attempts: gRPC makes longer and longer pauses between them.
  bool are_final(time now) const { return since_ != time::max() && now - since_ >= std::chrono::milliseconds(500); }
};
}  // namespace detail
}  // namespace strata
