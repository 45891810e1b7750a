// A gRPC server that only the processes of a training reach. Needs gRPC and protozero.
// needs: grpc protozero
#pragma once
#include <grpc/grpc.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/control/admission.hpp>
#include <strata/control/callers.hpp>
#include <strata/control/deadline.hpp>
#include <strata/control/grpc_log.hpp>
#include <strata/control/open_connections.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/net/connection_queue.hpp>
#include <strata/net/dial.hpp>
#include <strata/net/endpoint.hpp>
#include <strata/net/same_user.hpp>
#include <strata/net/tls_relay.hpp>
#include <strata/net/tls_stream.hpp>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace strata::detail {

/// The limits of a server.
struct server_limits {
  std::size_t largest_message = 64 << 10;  // bytes
  int streams = 64;                        // calls at a time per connection
  std::size_t memory = 32 << 20;           // bytes of all messages under way, approximately
  int members = 0;                         // processes that keep a connection open; 0: unknown
  std::chrono::milliseconds ping_after = std::chrono::seconds(10), ping_timeout = std::chrono::seconds(5);
};

/// Accepts connections itself, and passes one to gRPC when its other side has proved that it belongs to the training: by TLS, or,
/// if there is neither a secret nor a certificate, because it belongs to the same user of this machine. Until then a connection
/// costs a few KB, has 5 s, and does not count for `control_options::connections`. Without TLS, connections are passed to gRPC in
/// turns, by address. SO_REUSEPORT is not set: with it, a second server would silently share the port.
class guarded_server {
  using clock = std::chrono::steady_clock;

 public:
  static constexpr std::chrono::milliseconds time_to_prove{5000}, time_to_wait{5000};

  /// `who` names the server in errors: "the coordinator". `who_calls`: where the service notes its callers.
  /// Throws strata_error if it cannot listen at `where`, if the address is open to other machines without a proof, or if
  /// fewer connections are allowed than there are members.
  guarded_server(const endpoint& where, const std::string& who, grpc::CallbackGenericService& service,
                 const control_options& options, const server_limits& limits, std::shared_ptr<callers> who_calls)
      : admission_(options), open_(std::size_t(std::max(1, options.connections)), who_calls), callers_(std::move(who_calls)) {
    // Never shut down: when its last object is destroyed, gRPC 1.51 may wait 10 s for one of its threads.
    [[maybe_unused]] static const bool stays = (::grpc_init(), true);
    limit_grpc_log();
    admission_.refuse_if_open(where);
    if (limits.members > options.connections)
      throw_error({who, " is for ", limits.members, " processes, but control_options.connections is ", options.connections});
    listen(where, who);
    if (admission_.is_open(where))
      std::clog << text_of(
          {who, " at ", to_string(where), " admits any process that reaches it, because control_options.unprotected is set\n"});
    if (admission_.encrypts()) relay_.emplace(std::clamp(limits.largest_message, std::size_t(1) << 14, std::size_t(1) << 16));
    wake_ = io::file_descriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(int(limits.largest_message));
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 4096);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, limits.streams);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 5000);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, 30'000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, int(limits.ping_after.count()));
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, int(limits.ping_timeout.count()));
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    // By default gRPC closes connections on which clients ping that often.
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 500);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
    grpc::ResourceQuota quota("strata");
    builder.SetResourceQuota(quota.Resize(limits.memory));
    grpc_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, grpc::InsecureServerCredentials());
    builder.RegisterCallbackGenericService(&service);
    server_ = builder.BuildAndStart();
    if (!server_) throw_error({who, " cannot start at ", to_string(where)});
    thread_ = std::thread([this] { run(); });
  }
  ~guarded_server() {
    stops_ = true;
    const std::uint64_t one = 1;
    (void)!::write(wake_.number(), &one, sizeof one);
    thread_.join();
    server_->Shutdown(deadline_in(std::chrono::seconds(1)));
  }
  guarded_server(const guarded_server&) = delete;
  guarded_server& operator=(const guarded_server&) = delete;

 private:
  /// A connection whose other side has not proved yet that it belongs to the training.
  struct stranger {
    std::unique_ptr<tls_stream> stream;
    short waits_for = POLLIN;
  };
  /// A connection without TLS that gRPC has no room for yet.
  struct in_turn {
    io::file_descriptor socket;
    int listener;
    std::string name;
  };
  using strangers = connection_queue<stranger>;

  void listen(const endpoint& where, const std::string& who) {
    std::vector<socket_address> found;
    try {
      found = addresses_of(where, AI_PASSIVE, clock::now() + std::chrono::seconds(10));
    } catch (const strata_error& e) {
      throw_error({who, " cannot listen on ", to_string(where), ": ", e.what()});
    }
    int why = 0;
    for (const socket_address& a : found) {
      io::file_descriptor socket = tcp_socket(a);  // its connections inherit TCP_NODELAY
      const int on = 1;
      if (socket) {
        ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // to listen again right after a restart
        if (a.is_v6() && found.size() > 1) ::setsockopt(socket.number(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
        if (::bind(socket.number(), a.get(), a.size) == 0 && ::listen(socket.number(), SOMAXCONN) == 0) {
          listeners_.push_back(std::move(socket));
          continue;
        }
      }
      why = errno;  // a host may have addresses of a family that this machine lacks
      if (why == EADDRINUSE) break;
    }
    if (why == EADDRINUSE) throw_error({who, " cannot listen on ", to_string(where), ": is the port in use?"});
    if (listeners_.empty())
      throw_error({who, " cannot listen on ", to_string(where), ": ", std::generic_category().message(why)});
  }

  void run() {
    std::vector<::pollfd> on;
    while (!stops_) {
      const auto now = clock::now();
      open_.close_late(now);
      callers_->end_late(now);
      strangers_.close_older_than(time_to_prove, now);
      waiting_.close_older_than(time_to_wait, now);
      while (!waiting_.empty() && open_.has_room(now)) hand_over_next(now);
      const bool is_full = strangers_.is_full(now) || waiting_.is_full(now);
      on.assign(1, {wake_.number(), POLLIN, 0});
      for (const auto& l : listeners_) on.push_back({l.number(), short(is_full ? 0 : POLLIN), 0});
      const std::size_t first_stranger = on.size();
      for (const auto& s : strangers_) on.push_back({s.connection.stream->socket(), s.connection.waits_for, 0});
      const bool has_deadlines = !strangers_.empty() || open_.has_unknown();
      const int most = is_full || !waiting_.empty() ? 10 : has_deadlines ? 100 : 1000;
      if (::poll(on.data(), ::nfds_t(on.size()), most) <= 0) continue;
      auto s = strangers_.begin();
      for (std::size_t i = first_stranger; i < on.size(); ++i) s = on[i].revents ? go_on(s) : std::next(s);
      for (std::size_t i = 1; i < first_stranger; ++i)
        if (on[i].revents) accept_from(listeners_[i - 1].number());
    }
  }
  void accept_from(int listener) {
    for (int count = 0; count < most_at_a_time && !stops_; ++count) {
      const auto now = clock::now();
      if (strangers_.is_full(now) || waiting_.is_full(now)) return;
      socket_address from;
      io::file_descriptor socket(::accept4(listener, from.get(), &from.size, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!socket) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
          if (!strangers_.close_oldest()) waiting_.close_oldest();
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return;
      }
      const protection how = admission_.of(from, [&] { return is_from_same_user(socket.number()); });
      try {
        if (how == protection::none)
          waiting_.add({std::move(socket), listener, name_of_peer(from)}, address_without_port(from), now);
        else if (how == protection::tls)
          strangers_.add({std::make_unique<tls_stream>(std::move(socket), admission_.identity(), true)},
                         address_without_port(from), now);
      } catch (const std::exception&) {
        // There is no memory for it: this connection is closed, the training goes on.
      }
    }
  }
  /// Returns the iterator of the next connection.
  strangers::iterator go_on(strangers::iterator s) {
    std::unique_ptr<tls_stream>& stream = s->connection.stream;
    const stream_progress p = stream->greet();
    s->connection.waits_for = p.waits_for;
    if (p.waits_for != 0) return std::next(s);
    if (!p.is_broken && !p.is_closed && relay_->size() < open_.most()) try {
        const int number = relay_->add(std::move(stream));
        if (number >= 0) give_to_grpc(number, listeners_.front().number());
      } catch (const std::exception&) {
        // As in accept_from.
      }
    return strangers_.erase(s);
  }
  void hand_over_next(clock::time_point now) {
    auto next = waiting_.take_of_fewest([&](const std::string& address) { return open_.unknown_of(address); });
    open_.make_room();
    const int number = std::move(next.connection.socket).release();
    open_.add(number, std::move(next.connection.name), std::move(next.address), now);
    give_to_grpc(number, next.connection.listener);
  }
  void give_to_grpc(int number, int listener) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters handed;
    handed.listener_fd = listener, handed.fd = number;
    grpc_->HandleNewConnection(&handed);
  }

  static constexpr int most_at_a_time = 64;

  const admission admission_;
  open_connections open_;
  std::shared_ptr<callers> callers_;
  std::vector<io::file_descriptor> listeners_;
  io::file_descriptor wake_;
  strangers strangers_;
  connection_queue<in_turn> waiting_;
  std::optional<tls_relay> relay_;
  std::atomic<bool> stops_ = false;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> grpc_;
  std::unique_ptr<grpc::Server> server_;
  std::thread thread_;
};

}  // namespace strata::detail
