// What both ends of the control plane agree upon: who may speak, over which connection, with which headers. Needs gRPC.
// needs: grpc
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

/// Files in PEM: who is trusted, and who this process is. Both sides show their certificates; the name or address under which the
/// coordinator is reached has to be in its own.
struct mutual_tls {
  std::string authority, certificate, key;
};

struct control_options {
  std::optional<mutual_tls> tls{};
  bool unprotected = false;  // listen on other addresses than loopback without TLS: on networks that nobody else can reach
  int connections = 512;     // that a server has open at a time, at most, of about 30 KB each; others wait: more than processes
  heartbeat_options heartbeat{};
  /// Told by the coordinator, on a thread of its own, which process keeps the others waiting.
  std::function<void(const std::string&)> on_slow_process = [](const std::string& what) { std::clog << what + '\n'; };
};

namespace detail {
inline std::string pem_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file || text.empty()) throw error("cannot read " + path + ", or it is empty");
  if (text.find("-----BEGIN ") == text.npos || text.find("-----END ") == text.npos)  // gRPC would only log it
    throw error(path + " is no PEM file, or has no end");
  return text;
}

/// By its address, not by the beginning of its name: 127.0.0.1.example.org is somewhere else.
inline bool is_loopback(const std::string& host) {
  in_addr four{};
  in6_addr six{};
  if (::inet_pton(AF_INET, host.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  if (::inet_pton(AF_INET6, host.c_str(), &six) == 1) return IN6_IS_ADDR_LOOPBACK(&six);
  return same_host(host, "localhost");
}

inline void refuse_unprotected(const endpoint& where, const control_options& options) {
  if (!options.tls && !options.unprotected && !is_loopback(where.host))
    throw error("the control plane at " + to_string(where) + " can be reached from other machines: give control_options.tls, or set "
                "control_options.unprotected on a network that nobody else can reach");
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

/// Pings find out that the other side is gone, or its network.
inline constexpr std::chrono::milliseconds ping_after{2000}, ping_timeout{2000};

/// To a server that pings, too, and may be started again. Throws strata::error if it is open to other machines without TLS.
inline std::shared_ptr<grpc::Channel> watched_channel(const endpoint& where, const control_options& options,
                                                      std::size_t largest_message) {
  refuse_unprotected(where, options);
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, int(ping_after.count()));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, int(ping_timeout.count()));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // In spite of its name: the time that an attempt to connect is given.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(int(largest_message));
  return grpc::CreateCustomChannel(to_string(where), client_credentials(options), arguments);
}

inline grpc::ByteBuffer buffer_of(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}
inline std::string text_of(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (buffer.Valid() && buffer.Dump(&slices).ok())
    for (const grpc::Slice& s : slices) text.append(reinterpret_cast<const char*>(s.begin()), s.size());
  return text;
}

/// One message, and its answer, within the deadline of the context.
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

/// Tells a server that is gone from one that cannot be reached for a while: where nobody listens any more, the system refuses
/// connections at once, and each time; a network that is down says nothing.
class refused_connections {
  using time = std::chrono::steady_clock::time_point;
  time since_ = time::max();

 public:
  static bool is_one(const grpc::Status& status) { return status.error_message().find("onnection refused") != std::string::npos; }
  /// To be told how each attempt has ended.
  void add(const grpc::Status& status, time now) { since_ = is_one(status) ? std::min(since_, now) : time::max(); }
  /// Time for five attempts of gRPC, which makes longer and longer pauses between them.
  bool are_final(time now) const { return since_ != time::max() && now - since_ >= std::chrono::milliseconds(500); }
};

inline constexpr const char *set_method = "/strata.Coordinator/Set", *get_method = "/strata.Coordinator/Get",
                            *get_all_method = "/strata.Coordinator/GetAll", *join_method = "/strata.Coordinator/Join",
                            *beat_method = "/strata.Coordinator/Beat", *fail_method = "/strata.Coordinator/Fail",
                            *leave_method = "/strata.Coordinator/Leave",
                            *form_again_method = "/strata.Coordinator/FormAgain", *enter_method = "/strata.Coordinator/Enter";
inline constexpr const char *run_header = "strata-run", *generation_header = "strata-generation", *key_header = "strata-key",
                            *member_header = "strata-member";  // rank and incarnation
inline constexpr const char *is_late = "late", *failure_is_known = "!";  // an answer to a join; the beginning of a heartbeat
inline constexpr const char *all_are_here = "=", *some_are_missing = "-";  // beginnings of the answer to one who asks for all
inline constexpr std::size_t largest_value = 64 << 10, longest_key = 256;
inline constexpr std::size_t largest_answer = 4 << 20;  // to one who asks for all: 4 KB for each of 1,024 processes
}  // namespace detail
}  // namespace strata
