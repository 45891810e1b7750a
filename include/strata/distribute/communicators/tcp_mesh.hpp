// Connections over TCP between each two processes of a training, made once all of them have met in a key/value store.
#pragma once
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <random>
#include <sstream>
#include <strata/base/atomic_file.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/distribute/communicators/wait_state.hpp>
#include <strata/distribute/control/key_value_store.hpp>
#include <strata/distribute/endpoint.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace strata::detail {

/// Each process listens at `host` for those of higher rank and connects to those of lower rank; nobody listens any more once
/// all are connected. Who connects shows the random number that the listener has left in the store, and is shown its own: only
/// those who can read the store get in. What is sent afterwards is neither signed nor encrypted. Linux only.
class tcp_mesh {
  using clock = std::chrono::steady_clock;

  struct hello {
    std::uint64_t token;
    std::uint32_t rank, size;
  };
  static_assert(std::endian::native == std::endian::little, "messages between processes are little endian");
  struct meeting_point {
    std::string address;
    std::uint16_t port = 0;
    std::uint64_t token = 0;
  };
  /// One that has connected and perhaps not said everything yet.
  struct stranger {
    file_descriptor socket;
    hello said{};
    std::size_t bytes = 0;
  };

 public:
  /// Throws communication_error, naming who is missing, if not all of `with` (by rank) are connected in time.
  tcp_mesh(key_value_store& store, int rank, int size, const std::string& host, const std::vector<bool>& with,
           std::chrono::milliseconds timeout, const wait_state& waits)
      : rank_(rank), size_(size), with_(with), waits_(waits), deadline_(clock::now() + timeout), sockets_(std::size_t(size)) {
    file_descriptor listener;
    try {
      listener = listen_at(host);
      std::random_device random;
      mine_.token = std::uint64_t(random()) << 32 | random();
      const std::string key = "tcp ";
      store.set(key + std::to_string(rank),
                mine_.address + ' ' + std::to_string(mine_.port) + ' ' + std::to_string(mine_.token));
      read_points(store, key, timeout);
      for (int r = 0; r < rank; ++r)
        if (with_[std::size_t(r)]) connect_to(r, points_[std::size_t(r)]);
      accept_all(listener);
    } catch (const error& e) {
      throw communication_error("process " + std::to_string(rank) + " of " + std::to_string(size) + " (" + host +
                                ") could not connect to the others: " + e.what());
    }
  }

  /// By rank; nothing for this process and those that were left out. Reading and writing does not wait.
  std::vector<file_descriptor> take() && { return std::move(sockets_); }

 private:
  void read_points(key_value_store& store, const std::string& key, std::chrono::milliseconds timeout) try {
    for (const std::string& left : store.get_all(key, size_, timeout)) {
      std::istringstream words(left);
      meeting_point p;
      if (!(words >> p.address >> p.port >> p.token) || p.address.size() >= NI_MAXHOST)  // not shown: it may hold the token
        throw communication_error("process " + std::to_string(points_.size()) + " left something that is no address");
      points_.push_back(std::move(p));
    }
  } catch (const missing_values& e) {
    throw communication_error("process " + e.numbers() + " left no address within " + std::to_string(timeout.count()) + " ms");
  }
  [[noreturn]] static void fail(const std::string& what, int number) {
    throw communication_error(what + ": " + std::generic_category().message(number));
  }

  using addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;
  static addresses resolve(const std::string& host, const char* port, int flags) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    if (const int failed = ::getaddrinfo(host.c_str(), port, &hints, &found))
      throw communication_error('\'' + host + "' is no address: " + ::gai_strerror(failed));
    return {found, &::freeaddrinfo};
  }
  static file_descriptor socket_for(const addrinfo& a) {
    return file_descriptor(::socket(a.ai_family, a.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, a.ai_protocol));
  }

  /// At the first address of the host that is one of this machine, and at no other; the system chooses the port.
  file_descriptor listen_at(const std::string& host) {
    int failed = EADDRNOTAVAIL;
    const addresses found = resolve(host, "0", 0);
    for (const addrinfo* a = found.get(); a; a = a->ai_next) {
      file_descriptor s = socket_for(*a);
      sockaddr_storage bound{};
      socklen_t bytes = sizeof bound;
      if (!s || ::bind(s.number(), a->ai_addr, a->ai_addrlen) != 0 || ::listen(s.number(), SOMAXCONN) != 0 ||
          ::getsockname(s.number(), reinterpret_cast<sockaddr*>(&bound), &bytes) != 0) {
        failed = errno;
        continue;
      }
      char address[NI_MAXHOST] = {}, port[NI_MAXSERV] = {};
      ::getnameinfo(reinterpret_cast<const sockaddr*>(&bound), bytes, address, sizeof address, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV);
      mine_.address = address;
      mine_.port = std::uint16_t(std::stoi(port));
      return s;
    }
    fail("cannot listen at '" + host + '\'', failed);
  }

  /// Until `events` are there or it is time to look for something else; throws once time is up, and when interrupted.
  void wait_for(std::vector<pollfd>& on, const std::string& missing) {
    waits_.throw_if_interrupted();
    if (clock::now() > deadline_) throw communication_error(missing);
    ::poll(on.data(), nfds_t(on.size()), 20);
  }

  /// Again and again: one that listens with strangers at its door may have dropped this one.
  void connect_to(int other, const meeting_point& at) {
    const std::string name = "process " + std::to_string(other) + " at " + to_string(endpoint{at.address, at.port}),
                      missing = name + " did not answer in time";
    const addresses found = resolve(at.address, std::to_string(at.port).c_str(), AI_NUMERICHOST | AI_NUMERICSERV);
    for (;;) {
      file_descriptor s = socket_for(*found);
      if (!s) fail("cannot connect to " + name, errno);
      std::vector<pollfd> on{{s.number(), POLLOUT, 0}};
      if (::connect(s.number(), found->ai_addr, found->ai_addrlen) == 0 || errno == EINPROGRESS) {
        do wait_for(on, missing);
        while (on[0].revents == 0);
        prepare(s);
        const hello mine{at.token, std::uint32_t(rank_), std::uint32_t(size_)};
        stranger listener{std::move(s)};
        if (::send(listener.socket.number(), &mine, sizeof mine, MSG_NOSIGNAL) == ssize_t(sizeof mine)) {
          on[0].events = POLLIN;
          do wait_for(on, missing);
          while (listens(listener) && listener.bytes < sizeof(hello));
          if (listener.bytes == sizeof(hello) && listener.said.token == mine_.token &&
              listener.said.rank == std::uint32_t(other)) {
            sockets_[std::size_t(other)] = std::move(listener.socket);
            return;
          }
        }
      }
      std::vector<pollfd> nothing;
      wait_for(nothing, missing);
    }
  }

  void accept_all(const file_descriptor& listener) {
    std::list<stranger> strangers;
    const std::size_t most_strangers = 64 + std::size_t(size_);  // the oldest makes room
    for (int missing; (missing = first_missing()) < size_;) {
      std::vector<pollfd> on{{listener.number(), POLLIN, 0}};
      for (const stranger& s : strangers) on.push_back({s.socket.number(), POLLIN, 0});
      wait_for(on, "process " + std::to_string(missing) + " did not connect to " +
                       to_string(endpoint{mine_.address, mine_.port}) + " in time");
      for (std::size_t i = 0; i < most_strangers; ++i) {  // no more, or those who say who they are would make room, too
        file_descriptor s(::accept4(listener.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!s && (errno == EMFILE || errno == ENFILE)) fail("cannot accept a connection", errno);
        if (!s) break;
        if (strangers.size() == most_strangers) strangers.pop_front();
        strangers.push_back({std::move(s)});
      }
      for (auto s = strangers.begin(); s != strangers.end();) {
        const bool stays = listens(*s) && s->bytes < sizeof(hello);
        if (s->bytes == sizeof(hello)) let_in(*s);
        s = stays ? std::next(s) : strangers.erase(s);
      }
    }
  }
  int first_missing() const {
    int r = rank_ + 1;
    while (r < size_ && (!with_[std::size_t(r)] || sockets_[std::size_t(r)])) ++r;
    return r;
  }
  /// Whether the other side is still there, or was when there was nothing more to read.
  static bool listens(stranger& s) {
    std::byte* const to = reinterpret_cast<std::byte*>(&s.said) + s.bytes;
    const ssize_t got = ::recv(s.socket.number(), to, sizeof(hello) - s.bytes, 0);
    if (got > 0) s.bytes += std::size_t(got);
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
  }
  /// The last one counts: an older connection of the same process is one that it has given up.
  void let_in(stranger& s) {
    const auto r = std::size_t(s.said.rank);
    if (s.said.token != mine_.token || s.said.size != std::uint32_t(size_)) return;
    if (r <= std::size_t(rank_) || r >= std::size_t(size_) || !with_[r]) return;
    const hello answer{points_[r].token, std::uint32_t(rank_), std::uint32_t(size_)};
    prepare(s.socket);
    const ssize_t sent = ::send(s.socket.number(), &answer, sizeof answer, MSG_NOSIGNAL);
    if (sent == ssize_t(sizeof answer)) sockets_[r] = std::move(s.socket);
  }
  /// Small messages do not wait for company.
  static void prepare(const file_descriptor& socket) {
    const int on = 1;
    ::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }

  int rank_, size_;
  std::vector<bool> with_;
  const wait_state& waits_;
  clock::time_point deadline_;
  meeting_point mine_;
  std::vector<meeting_point> points_;  // of all
  std::vector<file_descriptor> sockets_;
};

}  // namespace strata::detail
