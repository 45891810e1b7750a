// Connects each pair of processes over TCP, after they have met in a key/value store. Needs protozero; Linux only.
// needs: protozero
#pragma once
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <strata/base/text.hpp>
#include <strata/communicators/key_value_store.hpp>
#include <strata/communicators/meeting.hpp>
#include <strata/communicators/wait_state.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/net/byte_stream.hpp>
#include <strata/net/connection_queue.hpp>
#include <strata/net/dial.hpp>
#include <strata/net/endpoint.hpp>
#include <strata/net/message.hpp>
#include <strata/net/random_token.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace strata::detail {

/// One end of a connection: a socket that does not block, or a stream in its place. Empty: there is none.
struct tcp_connection {
  io::file_descriptor socket{};
  std::unique_ptr<byte_stream> stream{};

  int number() const { return stream ? stream->socket() : socket.number(); }
  explicit operator bool() const { return stream || socket; }
};

/// Each process listens at `host` for the processes of higher rank and connects to those of lower rank, and stops listening when
/// all are connected. Both sides show the token that the other has left in the store, so only processes that can read the store
/// are accepted. With `protection` they then prove that they have its key, and all that follows is encrypted.
class tcp_mesh {
  using clock = std::chrono::steady_clock;

  /// A connection whose other side has not yet proved its rank.
  struct stranger {
    tcp_connection connection;
    std::array<char, tcp_hello::encoded_bytes> said{};
    std::size_t bytes = 0;
    int rank = -1;  // once it has shown the token; with protection, it has to prove the key next
    bool has_greeted = false;
    short waits_for = POLLIN;

    bool is_complete() const { return bytes == said.size(); }
    tcp_hello hello() const {
      try {
        return wire::decode<tcp_hello>({said.data(), said.size()});
      } catch (const wire::malformed_message&) {
        return {};  // without a token
      }
    }
  };
  enum class standing : std::uint8_t { waits, proved, gone };

 public:
  static constexpr std::chrono::milliseconds time_to_prove{5000};  // of a stranger

  /// `protection`: null without encryption. Throws communication_error, naming the missing process, if not all of `with` (by
  /// rank) are connected in time.
  tcp_mesh(key_value_store& store, int rank, int size, const std::string& host, const std::vector<bool>& with,
           std::chrono::milliseconds timeout, const socket_protection* protection, const wait_state& waits)
      : rank_(rank),
        size_(size),
        with_(with),
        protection_(protection),
        waits_(waits),
        deadline_(clock::now() + timeout),
        connections_(std::size_t(size)) {
    io::file_descriptor listener;
    try {
      listener = listen_at(host);
      mine_.token = random_token();
      const std::string key = "tcp ";
      store.set(text_of({key, rank}), wire::encode(mine_));
      read_points(store, key, timeout);
      for (int r = 0; r < rank; ++r)
        if (with_[std::size_t(r)]) connect_to(r, points_[std::size_t(r)]);
      accept_all(listener);
    } catch (const strata_error& e) {
      throw communication_error(
          text_of({"process ", rank, " of ", size, " (", host, ") could not connect to the others: ", e.what()}));
    }
  }

  /// The connections by rank; empty for this process and for those that are not in `with`.
  std::vector<tcp_connection> take() && { return std::move(connections_); }

 private:
  void read_points(key_value_store& store, const std::string& key, std::chrono::milliseconds timeout) try {
    for (const std::string& left : store.get_all(key, size_, timeout)) {
      points_.push_back(wire::decode<tcp_address>(left));
      if (points_.back().port < 1 || points_.back().port > 65535)
        throw communication_error(text_of({"port ", points_.back().port, " in its address"}));
    }
  } catch (const wire::malformed_message& e) {
    throw communication_error(text_of({"process ", points_.size(), " published a ", e.what()}));
  } catch (const missing_values& e) {
    throw communication_error(text_of({"process ", e.indices(), " published no address within ", timeout.count(), " ms"}));
  }
  [[noreturn]] static void fail(const std::string& what, int number) {
    throw communication_error(text_of({what, ": ", std::generic_category().message(number)}));
  }

  io::file_descriptor listen_at(const std::string& host) {
    auto [s, bound] = bound_at(host, deadline_);
    if (::listen(s.number(), SOMAXCONN) != 0) fail(text_of({"cannot listen at '", host, '\''}), errno);
    mine_.host = numeric_host(bound);
    mine_.port = bound.port();
    return std::move(s);
  }

  /// Waits for up to 20 ms. Throws communication_error when the time is up or the wait is interrupted.
  void wait_for(std::vector<pollfd>& on, const std::string& missing) {
    waits_.throw_if_interrupted();
    if (clock::now() > deadline_)
      throw communication_error(text_of({missing, why_refused_.empty() ? "" : "; the last connection failed: ", why_refused_}));
    ::poll(on.data(), nfds_t(on.size()), 20);
  }

  /// Repeats the attempt, because a process that many strangers connect to may drop this connection.
  void connect_to(int other, const tcp_address& at) {
    const std::string name = text_of({"process ", other, " at ", to_string(endpoint{at.host, std::uint16_t(at.port)})}),
                      missing = text_of({name, " did not answer in time"});
    const socket_address there = addresses_of({at.host, std::uint16_t(at.port)}, AI_NUMERICHOST, deadline_).front();
    for (;;) {
      io::file_descriptor s = tcp_socket(there);
      if (!s) fail(text_of({"cannot connect to ", name}), errno);
      std::vector<pollfd> on{{s.number(), POLLOUT, 0}};
      if (::connect(s.number(), there.get(), there.size) == 0 || errno == EINPROGRESS) {
        do wait_for(on, missing);
        while (on[0].revents == 0);
        stranger listener{{.socket = std::move(s)}};
        if (say_hello(listener.connection, at.token)) {
          standing now = standing::waits;
          do {
            on[0].events = listener.waits_for;
            wait_for(on, missing);
            now = go_on(listener);
          } while (now == standing::waits);
          if (now == standing::proved && listener.rank == other) {
            connections_[std::size_t(other)] = std::move(listener.connection);
            return;
          }
        }
      }
      std::vector<pollfd> nothing;
      wait_for(nothing, missing);
    }
  }

  /// Unidentified connections are limited as at the control port. A connection that has sent the token is that of a process, and
  /// is not closed to make room for others.
  void accept_all(const io::file_descriptor& listener) {
    connection_queue<stranger> strangers;
    std::list<stranger> known;
    const std::size_t most_known = 64 + std::size_t(size_);
    for (int missing; (missing = first_missing()) < size_;) {
      strangers.close_older_than(time_to_prove, clock::now());
      std::vector<pollfd> on{{listener.number(), short(strangers.is_full(clock::now()) ? 0 : POLLIN), 0}};
      for (const auto& s : strangers) on.push_back({s.connection.connection.number(), POLLIN, 0});
      for (const stranger& s : known) on.push_back({s.connection.number(), s.waits_for, 0});
      wait_for(on, text_of({"process ", missing, " did not connect to ",
                            to_string(endpoint{mine_.host, std::uint16_t(mine_.port)}), " in time"}));
      for (int i = 0; i < 64 && !strangers.is_full(clock::now()); ++i) {  // then those that are complete have their turn
        socket_address from;
        io::file_descriptor s(::accept4(listener.number(), from.get(), &from.size, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!s && (errno == EMFILE || errno == ENFILE) && !strangers.close_oldest()) fail("cannot accept a connection", errno);
        if (!s) break;
        strangers.add({{.socket = std::move(s)}}, address_without_port(from), clock::now());
      }
      for (auto s = known.begin(); s != known.end();) s = stays(*s) ? std::next(s) : known.erase(s);
      for (auto s = strangers.begin(); s != strangers.end();) {
        const bool waits = stays(s->connection);
        if (waits && s->connection.rank >= 0) {
          if (known.size() == most_known) known.pop_front();
          known.push_back(std::move(s->connection));
        }
        s = waits && s->connection.rank < 0 ? std::next(s) : strangers.erase(s);
      }
    }
  }
  /// True while the connection is not yet identified.
  bool stays(stranger& s) {
    const standing now = go_on(s);
    // The last connection of a process counts, because it has given up the earlier ones.
    if (now == standing::proved && s.rank > rank_) connections_[std::size_t(s.rank)] = std::move(s.connection);
    return now == standing::waits;
  }
  int first_missing() const {
    int r = rank_ + 1;
    while (r < size_ && (!with_[std::size_t(r)] || connections_[std::size_t(r)])) ++r;
    return r;
  }
  /// Processes the bytes that have arrived.
  standing go_on(stranger& s) {
    if (s.rank >= 0) return greet(s);
    const ssize_t got = ::recv(s.connection.number(), s.said.data() + s.bytes, s.said.size() - s.bytes, 0);
    if (got > 0) s.bytes += std::size_t(got);
    if (s.is_complete()) return recognize(s);
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)) ? standing::waits : standing::gone;
  }
  /// Checks the hello. The side that opened the connection has sent its own first.
  standing recognize(stranger& s) {
    const tcp_hello said = s.hello();
    const auto r = std::size_t(said.rank);
    if (said.token != mine_.token || said.size != std::uint32_t(size_)) return standing::gone;
    if (r == std::size_t(rank_) || r >= std::size_t(size_) || !with_[r]) return standing::gone;
    s.rank = int(r);
    const bool accepts = s.rank > rank_;
    if (accepts && !say_hello(s.connection, points_[r].token)) return standing::gone;
    if (!protection_) return standing::proved;
    s.connection.stream =
        protection_->protect(std::move(s.connection.socket), accepts, std::min(rank_, s.rank), std::max(rank_, s.rank));
    return greet(s);
  }
  /// The listener ends with a message that it keeps the connection: the other side has proved its key before the listener
  /// receives that, and may have been displaced by then.
  standing greet(stranger& s) {
    byte_stream& stream = *s.connection.stream;
    stream_progress p;
    if (!s.has_greeted) {
      p = stream.greet();
      s.has_greeted = p.waits_for == 0;
    }
    if (p.waits_for == 0 && !p.is_broken && !p.is_closed) {
      std::byte kept{1};
      p = s.rank > rank_ ? stream.write(&kept, 1) : stream.read(&kept, 1);
    }
    s.waits_for = p.waits_for;
    if (!p.is_broken && !p.is_closed) return p.waits_for != 0 ? standing::waits : standing::proved;
    why_refused_ = text_of({"process ", s.rank, " does not belong to the training, or its connection is lost: ",
                            p.is_closed ? "it was closed" : stream.why_broken()});
    return standing::gone;
  }
  bool say_hello(const tcp_connection& to, std::uint64_t token) const {
    const std::string hello = wire::encode(tcp_hello{token, std::uint32_t(rank_), std::uint32_t(size_)});
    return ::send(to.number(), hello.data(), hello.size(), MSG_NOSIGNAL) == ssize_t(hello.size());
  }

  int rank_, size_;
  std::vector<bool> with_;
  const socket_protection* protection_;
  const wait_state& waits_;
  clock::time_point deadline_;
  tcp_address mine_;
  std::vector<tcp_address> points_;  // of all processes
  std::vector<tcp_connection> connections_;
  std::string why_refused_;
};

}  // namespace strata::detail
