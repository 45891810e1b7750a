// The user who owns a connection on this machine, according to the kernel. Linux only.
#pragma once
#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <strata/io/file_descriptor.hpp>
#include <string>

namespace strata::detail {

/// The address of one end of a connection.
struct socket_address {
  ::sockaddr_storage bytes{};
  ::socklen_t size = sizeof(::sockaddr_storage);

  ::sockaddr* get() { return reinterpret_cast<::sockaddr*>(&bytes); }
  const ::sockaddr* get() const { return reinterpret_cast<const ::sockaddr*>(&bytes); }
  const ::sockaddr_in& v4() const { return reinterpret_cast<const ::sockaddr_in&>(bytes); }
  const ::sockaddr_in6& v6() const { return reinterpret_cast<const ::sockaddr_in6&>(bytes); }

  bool is_v4() const { return bytes.ss_family == AF_INET; }
  bool is_v6() const { return bytes.ss_family == AF_INET6; }
  int port() const { return ntohs(is_v4() ? v4().sin_port : v6().sin6_port); }
  /// True for addresses that only processes of this machine can use.
  bool is_loopback() const {
    if (is_v4()) return (ntohl(v4().sin_addr.s_addr) >> 24) == 127;
    return is_v6() && (IN6_IS_ADDR_LOOPBACK(&v6().sin6_addr) ||
                       (IN6_IS_ADDR_V4MAPPED(&v6().sin6_addr) && v6().sin6_addr.s6_addr[12] == 127));
  }
};

/// The IPv4 address, such as 10.0.0.1, or the first 64 bits of an IPv6 address, which belong to one subscriber.
inline std::string address_without_port(const socket_address& a) {
  char text[INET6_ADDRSTRLEN] = {};
  if (a.is_v4()) return ::inet_ntop(AF_INET, &a.v4().sin_addr, text, sizeof text);
  ::in6_addr network = a.v6().sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&network)) return ::inet_ntop(AF_INET, &network.s6_addr[12], text, sizeof text);
  std::fill(network.s6_addr + 8, network.s6_addr + 16, static_cast<unsigned char>(0));
  return ::inet_ntop(AF_INET6, &network, text, sizeof text);
}

/// True if the kernel uses this id for all users of the machine that are unknown in the user namespace of this process.
inline bool is_any_user(::uid_t user) {
  ::uid_t overflow = 65534;
  std::ifstream("/proc/sys/kernel/overflowuid") >> overflow;
  if (user != overflow) return false;
  unsigned long inside = 1, outside = 1, count = 0;
  std::ifstream("/proc/self/uid_map") >> inside >> outside >> count;
  return inside != 0 || outside != 0 || count < 4294967295;  // the namespace of the machine itself knows all
}

/// The user whose process has the TCP socket with the address `own`, connected to `other` (TCP_ESTABLISHED), or listening
/// (TCP_LISTEN). Empty if there is none in that state, or if the kernel does not report it.
inline std::optional<::uid_t> owner_of_socket(const socket_address& own, const socket_address& other, int state) {
  if (own.bytes.ss_family != other.bytes.ss_family || (!own.is_v4() && !own.is_v6())) return {};
  const io::file_descriptor netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!netlink) return {};
  struct {
    ::nlmsghdr head;
    ::inet_diag_req_v2 what;
  } request{};
  request.head.nlmsg_len = sizeof request;
  request.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.head.nlmsg_flags = NLM_F_REQUEST;
  request.what.sdiag_family = static_cast<::__u8>(own.bytes.ss_family);
  request.what.sdiag_protocol = IPPROTO_TCP;
  request.what.idiag_states = ~::__u32(0);
  ::inet_diag_sockid& id = request.what.id;
  if (own.is_v4()) {
    id.idiag_sport = own.v4().sin_port, id.idiag_dport = other.v4().sin_port;
    std::memcpy(id.idiag_src, &own.v4().sin_addr, sizeof own.v4().sin_addr);
    std::memcpy(id.idiag_dst, &other.v4().sin_addr, sizeof other.v4().sin_addr);
  } else {
    id.idiag_sport = own.v6().sin6_port, id.idiag_dport = other.v6().sin6_port;
    std::memcpy(id.idiag_src, &own.v6().sin6_addr, sizeof own.v6().sin6_addr);
    std::memcpy(id.idiag_dst, &other.v6().sin6_addr, sizeof other.v6().sin6_addr);
  }
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  if (::send(netlink.number(), &request, sizeof request, 0) != ::ssize_t(sizeof request)) return {};
  struct {
    ::nlmsghdr head;
    ::inet_diag_msg what;
    char more[4096];
  } answer{};
  const ::ssize_t got = ::recv(netlink.number(), &answer, sizeof answer, 0);
  const bool is_answer =
      got >= ::ssize_t(sizeof answer.head + sizeof answer.what) && answer.head.nlmsg_type == SOCK_DIAG_BY_FAMILY;
  // A socket that its process has closed has no inode any more, and the kernel reports user 0 for it.
  if (!is_answer || answer.what.idiag_state != state || answer.what.idiag_inode == 0) return {};
  if (is_any_user(answer.what.idiag_uid)) return {};
  return answer.what.idiag_uid;
}

/// True if the other end of a connection on this machine belongs to a process of this user. `socket` was accepted.
inline std::optional<bool> is_from_same_user(int socket) {
  socket_address own, other;
  if (::getsockname(socket, own.get(), &own.size) != 0 || ::getpeername(socket, other.get(), &other.size) != 0) return {};
  const std::optional<::uid_t> owner = owner_of_socket(other, own, TCP_ESTABLISHED);
  if (!owner) return {};
  return *owner == ::geteuid();
}
/// True if the process that listens at that address of this machine belongs to this user. (The kernel does not have the owner of
/// a connection that has not been accepted yet.)
inline std::optional<bool> listener_is_of_same_user(const socket_address& at) {
  socket_address none = at;  // no connection comes from the port that listens
  const std::optional<::uid_t> owner = owner_of_socket(at, none, TCP_LISTEN);
  if (!owner) return {};
  return *owner == ::geteuid();
}

}  // namespace strata::detail
