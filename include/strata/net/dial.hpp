// Opens TCP connections: name look-ups and attempts end at a deadline.
#pragma once
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <strata/base/text.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/net/endpoint.hpp>
#include <strata/net/same_user.hpp>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace strata::detail {

using steady_time = std::chrono::steady_clock::time_point;

/// A host without a known address, at least for now: on Kubernetes, a pod gets a name only once it has been scheduled.
struct unknown_host : communication_error {
  using communication_error::communication_error;
};

/// The addresses of a host, each once, in the order in which the system prefers them. Throws unknown_host if there is none, or if
/// the name servers have not answered by the deadline.
inline std::vector<socket_address> addresses_of(const endpoint& where, int flags, steady_time deadline) {
  struct look_up {
    std::mutex mutex;
    std::condition_variable is_over;
    bool has_answer = false;
    int code = 0;
    std::vector<socket_address> found;

    void ask(const std::string& host, const std::string& port, int flags) {
      ::addrinfo hints{}, *first = nullptr;
      hints.ai_socktype = SOCK_STREAM;
      hints.ai_flags = flags | AI_NUMERICSERV;
      const int failed = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &first);
      const std::lock_guard lock(mutex);
      code = failed, has_answer = true;
      if (failed != 0) return is_over.notify_all();
      for (const ::addrinfo* a = first; a; a = a->ai_next) {
        socket_address address;
        std::memcpy(&address.bytes, a->ai_addr, a->ai_addrlen);
        address.size = a->ai_addrlen;
        const auto is_equal = [&](const socket_address& b) {
          return b.size == address.size && std::memcmp(&b.bytes, &address.bytes, b.size) == 0;
        };
        if (std::ranges::none_of(found, is_equal)) found.push_back(address);  // /etc/hosts may list an address twice
      }
      ::freeaddrinfo(first);
      is_over.notify_all();
    }
  };
  const auto asked = std::make_shared<look_up>();
  const std::string port = std::to_string(where.port);
  asked->ask(where.host, port, flags | AI_NUMERICHOST);  // an address needs no name server
  if (asked->code != 0 && !(flags & AI_NUMERICHOST)) {
    asked->has_answer = false;
    // The C library cannot end a look-up early, so the thread is detached.
    try {
      std::thread([asked, host = where.host, port, flags] { asked->ask(host, port, flags); }).detach();
    } catch (const std::system_error& e) {
      throw communication_error(text_of({"cannot look up '", where.host, "': ", e.what()}));
    }
    std::unique_lock lock(asked->mutex);
    if (!asked->is_over.wait_until(lock, deadline, [&] { return asked->has_answer; }))
      throw unknown_host(text_of({"the name servers did not resolve '", where.host, "' in time"}));
  }
  if (asked->code != 0) throw unknown_host(text_of({'\'', where.host, "' is not an address: ", ::gai_strerror(asked->code)}));
  return asked->found;
}

/// The address as digits, without the port: 10.0.0.1, fe80::1%eth0
inline std::string numeric_host(const socket_address& a) {
  char text[NI_MAXHOST] = {};
  ::getnameinfo(a.get(), a.size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

inline io::file_descriptor tcp_socket(const socket_address& of) {
  io::file_descriptor s(::socket(of.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (s) ::setsockopt(s.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // small messages are sent at once
  return s;
}

/// A socket at a port that the system chooses, at the first address of the host that this machine has. Throws
/// communication_error if it has none of them.
inline std::pair<io::file_descriptor, socket_address> bound_at(const std::string& host, steady_time deadline) {
  int failed = EADDRNOTAVAIL;
  for (const socket_address& a : addresses_of({host, 0}, 0, deadline)) {
    io::file_descriptor s = tcp_socket(a);
    socket_address bound;
    if (s && ::bind(s.number(), a.get(), a.size) == 0 && ::getsockname(s.number(), bound.get(), &bound.size) == 0)
      return {std::move(s), bound};
    failed = errno;
  }
  throw communication_error(text_of({"cannot listen at '", host, "': ", std::generic_category().message(failed)}));
}

/// Waits until the socket can be read or written. Returns false when the time is up.
inline bool wait_for_socket(int socket, short events, steady_time deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    ::pollfd on{socket, events, 0};
    if (::poll(&on, 1, int(std::min<long>(left.count(), 1000))) > 0) return true;
  }
}

/// A connection that does not block, and its address there. Throws communication_error with the reason if none of the addresses
/// of the host accepts it in time.
inline std::pair<io::file_descriptor, socket_address> dial(const endpoint& where, steady_time deadline) {
  std::string why;
  const std::vector<socket_address> found = addresses_of(where, 0, deadline);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const socket_address& a = found[i];
    // One that does not answer leaves time for those after it.
    const auto now = std::chrono::steady_clock::now(), until = now + (deadline - now) / long(found.size() - i);
    io::file_descriptor s = tcp_socket(a);
    int failed = s && (::connect(s.number(), a.get(), a.size) == 0 || errno == EINPROGRESS) ? 0 : errno;
    ::socklen_t size = sizeof failed;
    if (failed == 0 && !wait_for_socket(s.number(), POLLOUT, until)) failed = ETIMEDOUT;
    if (failed == 0) ::getsockopt(s.number(), SOL_SOCKET, SO_ERROR, &failed, &size);
    if (failed == 0) return {std::move(s), a};
    why = std::generic_category().message(failed);
  }
  throw communication_error(text_of({to_string(where), ": ", why}));
}

}  // namespace strata::detail
