// The connections that a server has without TLS: those of members, and others, which make room for them. Needs gRPC.
// needs: grpc
#pragma once
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <strata/base/text.hpp>
#include <strata/control/callers.hpp>
#include <strata/net/same_user.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata::detail {

/// The other side of a connection, as gRPC names it in a call: ipv4:10.0.0.1:2222, ipv6:%5B::1%5D:2222
inline std::string name_of_peer(const socket_address& a) {
  char text[INET6_ADDRSTRLEN] = {};
  if (a.is_v4()) return text_of({"ipv4:", ::inet_ntop(AF_INET, &a.v4().sin_addr, text, sizeof text), ':', a.port()});
  if (IN6_IS_ADDR_V4MAPPED(&a.v6().sin6_addr)) return text_of({"ipv4:", address_without_port(a), ':', a.port()});
  return text_of({"ipv6:%5B", ::inet_ntop(AF_INET6, &a.v6().sin6_addr, text, sizeof text), "%5D:", a.port()});
}

/// Connections that gRPC owns. At most 32 of them are unidentified, that is, no member has called over them, so that they take
/// little time from the others. An unidentified one is closed after 10 s, or after 1 s if another one comes.
class open_connections {
  using time = std::chrono::steady_clock::time_point;
  /// gRPC closes the connection. Its number may then belong to another file, which has another inode.
  struct connection {
    int number;
    ::ino_t inode;
    std::string name, address;
    time since;
  };
  static ::ino_t inode_of(int number) {
    struct ::stat what{};
    return ::fstat(number, &what) == 0 ? what.st_ino : 0;
  }

 public:
  static constexpr std::size_t most_unknown = 32;
  static constexpr std::chrono::seconds time_to_join{10}, undisturbed{1};

  open_connections(std::size_t most, std::shared_ptr<callers> who) : most_(most), callers_(std::move(who)) {}

  std::size_t most() const { return most_; }
  void add(int number, std::string name, std::string address, time now) {
    all_.push_back({number, inode_of(number), std::move(name), std::move(address), now});
    ++unknown_;
  }
  /// True if another connection may be added now.
  bool has_room(time now) {
    if (!is_full()) return true;
    look(now);
    if (!is_full()) return true;
    const auto oldest = oldest_unknown();
    return oldest != all_.end() && now - oldest->since >= undisturbed;
  }
  /// Closes the connection that has to make room, if there is no room otherwise.
  void make_room() {
    if (!is_full()) return;
    const auto oldest = oldest_unknown();
    if (oldest == all_.end()) return;
    close(*oldest);
    all_.erase(oldest);
    --unknown_;
  }
  /// The number of unidentified connections from this address.
  std::size_t unknown_of(const std::string& address) const {
    return std::size_t(
        std::ranges::count_if(all_, [&](const connection& c) { return c.address == address && !callers_->has_member(c.name); }));
  }
  void close_late(time now) {
    if (now >= next_look_) look(now);
  }
  /// True if `close_late` has to be called again.
  bool has_unknown() const { return unknown_ > 0; }

 private:
  static void close(const connection& c) {
    if (inode_of(c.number) == c.inode) ::shutdown(c.number, SHUT_RDWR);
  }
  bool is_full() const { return all_.size() >= most_ || unknown_ >= most_unknown; }
  std::vector<connection>::iterator oldest_unknown() {
    return std::ranges::find_if(all_, [&](const connection& c) { return !callers_->has_member(c.name); });
  }
  /// Forgets connections that are closed, and closes those of no member that are late.
  void look(time now) {
    next_look_ = now + std::chrono::seconds(1);
    unknown_ = 0;
    std::erase_if(all_, [&](const connection& c) {
      if (inode_of(c.number) != c.inode) return callers_->forget(c.name), true;
      if (callers_->has_member(c.name)) return false;
      const bool is_late = now - c.since >= time_to_join;
      if (is_late) close(c);
      unknown_ += !is_late;
      return is_late;
    });
  }

  const std::size_t most_;
  std::shared_ptr<callers> callers_;
  std::vector<connection> all_;  // the oldest first; some may be closed since the last look
  std::size_t unknown_ = 0;      // of no member, as of the last look, and added since
  time next_look_{};
};

}  // namespace strata::detail
