// A gRPC server with a limit of open connections, so that a flood of them costs no memory. Needs gRPC and protozero.
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
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/distribute/control/control_channel.hpp>
#include <strata/distribute/control/deadline.hpp>
#include <strata/distribute/endpoint.hpp>
#include <strata/io/file_descriptor.hpp>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace strata::detail {

/// What a server accepts.
struct server_limits {
  std::size_t largest_message = 64 << 10;  // bytes
  int streams = 64;                        // calls at a time per connection
  std::size_t memory = 32 << 20;           // bytes of all messages under way, approximately
  int members = 0;                         // processes that keep a connection open; 0: unknown
  std::chrono::milliseconds ping_after = std::chrono::seconds(10), ping_timeout = std::chrono::seconds(5);
};

/// gRPC accepts connections faster than it closes them, at about 25 KB each: 10,000 at once took 200 MB, which its resource quota
/// does not count. So this class accepts them, and hands them to gRPC only while fewer than `control_options::connections` are
/// open; the others stay in the kernel's queue. It does not set SO_REUSEPORT, with which a second server would silently share the
/// port.
class guarded_server {
 public:
  /// `who` names the server in errors: "the coordinator". Throws strata::error if it cannot listen at `where`, if the address is
  /// open to other machines without TLS, or if fewer connections are allowed than there are members.
  guarded_server(const endpoint& where, const std::string& who, grpc::CallbackGenericService& service,
                 const control_options& options, const server_limits& limits)
      : most_(std::size_t(std::max(1, options.connections))) {
    // Never shut down: when its last object is destroyed, gRPC 1.51 may wait 10 s for one of its threads.
    [[maybe_unused]] static const bool stays = (::grpc_init(), true);
    refuse_unprotected(where, options);
    if (limits.members > options.connections)
      throw_error({who, " is for ", limits.members, " processes, but control_options.connections is ", options.connections});
    listen(where, who);
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
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, server_credentials(options));
    builder.RegisterCallbackGenericService(&service);
    server_ = builder.BuildAndStart();
    if (!server_) throw_error({who, " cannot start at ", to_string(where)});
    thread_ = std::thread([this] { accept_all(); });
  }
  ~guarded_server() {
    stops_ = true;
    for (const polled& p : listeners_) ::shutdown(p.fd, SHUT_RDWR);  // wakes the thread
    thread_.join();
    server_->Shutdown(deadline_in(std::chrono::seconds(1)));
  }
  guarded_server(const guarded_server&) = delete;
  guarded_server& operator=(const guarded_server&) = delete;

 private:
  using polled = ::pollfd;
  /// gRPC closes the connection. Its number may then belong to another file, which has another inode.
  struct connection {
    int number;
    ::ino_t inode;
  };
  static ::ino_t inode_of(int number) {
    struct ::stat what{};
    return ::fstat(number, &what) == 0 ? what.st_ino : 0;
  }

  void listen(const endpoint& where, const std::string& who) {
    ::addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    ::addrinfo* found = nullptr;
    if (const int code = ::getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &hints, &found))
      throw_error({who, " cannot listen on ", to_string(where), ": ", ::gai_strerror(code)});
    const std::unique_ptr<::addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
    const auto is_again = [&](const ::addrinfo& b) {  // /etc/hosts may list an address twice
      for (const ::addrinfo* a = found; a != &b; a = a->ai_next)
        if (a->ai_addrlen == b.ai_addrlen && std::memcmp(a->ai_addr, b.ai_addr, b.ai_addrlen) == 0) return true;
      return false;
    };
    int why = 0;
    for (const ::addrinfo* a = found; a; a = a->ai_next) {
      if (is_again(*a)) continue;
      io::file_descriptor socket(::socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, a->ai_protocol));
      const int on = 1;
      if (socket) {
        ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // to listen again right after a restart
        ::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // inherited by the connections
        if (a->ai_family == AF_INET6 && found->ai_next) ::setsockopt(socket.number(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
        if (::bind(socket.number(), a->ai_addr, a->ai_addrlen) == 0 && ::listen(socket.number(), SOMAXCONN) == 0) {
          listeners_.push_back({socket.number(), POLLIN, 0});
          sockets_.push_back(std::move(socket));
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

  void accept_all() {
    using namespace std::chrono_literals;
    while (!stops_) {
      if (open_.size() >= most_) std::erase_if(open_, [](const connection& c) { return inode_of(c.number) != c.inode; });
      if (open_.size() >= most_) {
        std::this_thread::sleep_for(10ms);
        continue;
      }
      if (::poll(listeners_.data(), ::nfds_t(listeners_.size()), -1) <= 0) continue;
      for (const polled& p : listeners_) {
        if (!(p.revents & POLLIN) || stops_ || open_.size() >= most_) continue;
        const int number = ::accept4(p.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (number < 0) {
          if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) std::this_thread::sleep_for(10ms);
          continue;
        }
        open_.push_back({number, inode_of(number)});
        grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters handed;
        handed.listener_fd = p.fd, handed.fd = number;
        grpc_->HandleNewConnection(&handed);
      }
    }
  }

  const std::size_t most_;
  std::vector<io::file_descriptor> sockets_;
  std::vector<polled> listeners_;
  std::vector<connection> open_;  // some may be closed since the last check
  std::atomic<bool> stops_ = false;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> grpc_;
  std::unique_ptr<grpc::Server> server_;
  std::thread thread_;
};

}  // namespace strata::detail
