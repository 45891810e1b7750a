// message_server: answers the calls of the processes of a training, and of nobody else. Needs OpenSSL and protozero.
// needs: openssl protozero
#pragma once
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/control/admission.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/net/byte_stream.hpp>
#include <strata/net/call_status.hpp>
#include <strata/net/connection_queue.hpp>
#include <strata/net/dial.hpp>
#include <strata/net/endpoint.hpp>
#include <strata/net/envelope.hpp>
#include <strata/net/message_link.hpp>
#include <strata/net/same_user.hpp>
#include <strata/net/tls_stream.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace strata::detail {

/// The limits of a server.
struct server_limits {
  std::size_t largest_message = 64 << 10;  // bytes, of a member
  std::size_t calls = 64;                  // at a time per connection
  int members = 0;                         // processes that keep a connection open; 0: unknown
  ping_times pings{.after = std::chrono::seconds(10), .timeout = std::chrono::seconds(5)};
};

class served_call;

/// A connection that a server has let in.
class served_connection {
 public:
  using epoll = std::shared_ptr<const io::file_descriptor>;

  served_connection(std::unique_ptr<byte_stream> stream, std::string from, epoll watch)
      : address(std::move(from)), watch_(std::move(watch)), link_(std::move(stream), true, 0) {
    if (!set_events(EPOLL_CTL_ADD)) throw_error("a connection cannot be watched");
  }

  const std::string address;
  const std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
  std::atomic<bool> is_of_member = false;
  std::function<void()> when_it_ends{};  // of the service, set and called by the server's thread

  int socket() const { return link_.socket(); }
  /// Gives f the link and the calls without an answer. Watches for what the link waits for after that.
  template <class F>
  auto with(F&& f) {
    const std::lock_guard lock(mutex_);
    struct watches {
      served_connection& c;
      ~watches() {
        if (c.events() != c.events_) c.set_events(EPOLL_CTL_MOD);
      }
    } const after{*this};
    return f(link_, calls_);
  }

 private:
  /// A connection that is not read while it is congested may have requests in its buffers, which no further event announces. So
  /// the event that follows is that there is room.
  short events() const {
    if (link_.is_congested()) return POLLOUT;
    return short(link_.events() | (events_ == POLLOUT ? POLLOUT : 0));
  }
  bool set_events(int how) {
    ::epoll_event e{};
    e.events = std::uint32_t(events_ = events()), e.data.fd = socket();
    return ::epoll_ctl(watch_->number(), how, socket(), &e) == 0;
  }

  epoll watch_;
  short events_ = 0;
  std::mutex mutex_;  // of what follows; a service may hold its own locks
  message_link link_;
  std::unordered_map<std::uint32_t, std::shared_ptr<served_call>> calls_;
};
static_assert(POLLIN == EPOLLIN && POLLOUT == EPOLLOUT);

/// A request, whose answer may come later and from any thread. Only the first answer is sent, and none once the caller has ended.
class served_call {
  std::weak_ptr<served_connection> connection_;
  std::uint32_t number_;

 public:
  const std::string method;
  const wire::sender from;

  served_call(const std::shared_ptr<served_connection>& connection, std::uint32_t number, std::string_view m, wire::sender sender)
      : connection_(connection), number_(number), method(m), from(std::move(sender)) {}

  void answer(wire::sealed_message message) { end(status_code::ok, std::move(message)); }
  template <wire::message M>
  void answer(const M& body) {
    answer(wire::sealed(body));
  }
  void refuse(status_code code, std::string why) { end(code, {std::move(why), {}}); }

  // Called while the request is handled.

  /// Its connection is that of a member, which never makes room for others. `when_it_ends` is called when the connection ends.
  void is_of_member(std::function<void()> when_it_ends = {}) const {
    const auto c = connection_.lock();
    c->is_of_member = true;
    if (when_it_ends) c->when_it_ends = std::move(when_it_ends);
  }

 private:
  void end(status_code code, wire::sealed_message message) {
    const auto c = connection_.lock();
    if (!c) return;
    c->with([&](message_link& link, auto& calls) {
      if (calls.erase(number_) > 0)
        link.send({.call = number_, .kind = frame_kind::answer, .code = code}, {}, std::move(message));
    });
  }
};

/// What a server calls, always in the same thread.
class message_service {
 public:
  /// A request has come. May throw wire::malformed_message, which refuses it. `received` is gone afterwards.
  virtual void handle(const std::shared_ptr<served_call>& c, wire::envelope& received) = 0;
  /// The caller of a call without an answer waits no longer, or is gone.
  virtual void forget(const served_call& c) = 0;

 protected:
  ~message_service() = default;
};

/// Accepts connections, and reads one when its other side has proved that it belongs to the training: by TLS, or, if there is
/// neither a secret nor a certificate, because it belongs to the same user of this machine. Until then a connection costs a few
/// KB, has 5 s, and does not count for `control_options::connections`. After that connections are let in by turns, by address. At
/// most 32 of them are unidentified, that is, no member has called over them: they may send small messages only, and are closed
/// after 10 s, or after 1 s if another one comes. SO_REUSEPORT is not set: with it, a second server would silently share the
/// port.
class message_server {
  using clock = std::chrono::steady_clock;

 public:
  static constexpr std::chrono::milliseconds time_to_prove{5000}, time_to_wait{5000}, time_to_join{10'000}, undisturbed{1000};
  static constexpr std::size_t most_unknown = 32, largest_of_unknown = 72 << 10;

  /// `who` names the server in errors: "the coordinator".
  /// Throws strata::strata_error if it cannot listen at `where`, if the address is open to other machines without a proof, or if
  /// fewer connections are allowed than there are members.
  message_server(const endpoint& where, const std::string& who, message_service& service, const control_options& options,
                 const server_limits& limits)
      : admission_(options), service_(service), limits_(limits), most_(std::size_t(std::max(1, options.connections))) {
    admission_.refuse_if_open(where);
    if (limits.members > options.connections)
      throw_error({who, " is for ", limits.members, " processes, but control_options.connections is ", options.connections});
    listen(where, who);
    if (admission_.is_open(where))
      std::clog << text_of(
          {who, " at ", to_string(where), " admits any process that reaches it, because control_options.unprotected is set\n"});
    wake_ = io::file_descriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    watch_ = std::make_shared<const io::file_descriptor>(::epoll_create1(EPOLL_CLOEXEC));
    if (!wake_ || !*watch_) throw_error({who, " cannot start at ", to_string(where), ": the process has too many open files"});
    thread_ = std::thread([this] { run(); });
  }
  /// Answers that were given before are still sent.
  ~message_server() {
    stops_ = true;
    const std::uint64_t one = 1;
    (void)!::write(wake_.number(), &one, sizeof one);
    thread_.join();
  }
  message_server(const message_server&) = delete;
  message_server& operator=(const message_server&) = delete;

 private:
  using stream = std::unique_ptr<byte_stream>;
  using connection = std::shared_ptr<served_connection>;
  /// A connection whose other side has not proved yet that it belongs to the training.
  struct stranger {
    stream of;
    short waits_for = POLLIN;
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
      look(now);
      strangers_.close_older_than(time_to_prove, now);
      waiting_.close_older_than(time_to_wait, now);
      while (!waiting_.empty() && make_room(now)) let_in_next();
      const bool is_full = strangers_.is_full(now) || waiting_.is_full(now);
      on.assign({{wake_.number(), POLLIN, 0}, {watch_->number(), POLLIN, 0}});
      for (const auto& l : listeners_) on.push_back({l.number(), short(is_full ? 0 : POLLIN), 0});
      const std::size_t first_stranger = on.size();
      for (const auto& s : strangers_) on.push_back({s.connection.of->socket(), s.connection.waits_for, 0});
      const int most = !busy_.empty() ? 0 : is_full || !waiting_.empty() ? 10 : !strangers_.empty() ? 100 : look_every;
      if (::poll(on.data(), ::nfds_t(on.size()), most) <= 0 && busy_.empty()) continue;
      for (const connection& c : std::exchange(busy_, {})) serve(c);
      if (on[1].revents) serve_ready();
      auto s = strangers_.begin();
      for (std::size_t i = first_stranger; i < on.size(); ++i) s = on[i].revents ? go_on(s) : std::next(s);
      for (std::size_t i = 2; i < first_stranger; ++i)
        if (on[i].revents) accept_from(listeners_[i - 2].number());
    }
    send_rest();
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
          waiting_.add(std::make_unique<plain_stream>(std::move(socket)), address_without_port(from), now);
        else if (how == protection::tls)
          strangers_.add({std::make_unique<tls_stream>(std::move(socket), admission_.identity(), true)},
                         address_without_port(from), now);
      } catch (const std::exception&) {
        // There is no memory for it: this connection is closed, the training goes on.
      }
    }
  }
  /// Returns the iterator of the next stranger.
  strangers::iterator go_on(strangers::iterator s) {
    const stream_progress p = s->connection.of->greet();
    s->connection.waits_for = p.waits_for;
    if (p.waits_for != 0) return std::next(s);
    const auto now = clock::now();
    if (!p.is_broken && !p.is_closed && !waiting_.is_full(now)) try {
        waiting_.add(std::move(s->connection.of), s->address, now);
      } catch (const std::exception&) {
        // As in accept_from.
      }
    return strangers_.erase(s);
  }

  static bool is_unknown(const std::pair<const int, connection>& c) { return !c.second->is_of_member; }
  bool is_full() const {
    return connections_.size() >= most_ || std::size_t(std::ranges::count_if(connections_, is_unknown)) >= most_unknown;
  }
  /// Closes the oldest unidentified connection if there is no room otherwise. Returns false if there is none.
  bool make_room(clock::time_point now) {
    if (!is_full()) return true;
    connection oldest;
    for (const auto& c : connections_)
      if (is_unknown(c) && (!oldest || c.second->since < oldest->since)) oldest = c.second;
    if (!oldest || now - oldest->since < undisturbed) return false;
    drop(oldest);
    return !is_full();
  }
  void let_in_next() {
    auto next = waiting_.take_of_fewest([&](const std::string& address) {
      return std::size_t(
          std::ranges::count_if(connections_, [&](const auto& c) { return is_unknown(c) && c.second->address == address; }));
    });
    ::setsockopt(next.connection->socket(), IPPROTO_TCP, TCP_USER_TIMEOUT, &time_to_take, sizeof time_to_take);
    try {
      const auto c = std::make_shared<served_connection>(std::move(next.connection), std::move(next.address), watch_);
      connections_[c->socket()] = c;
      serve(c);
    } catch (const std::exception&) {
      // As in accept_from.
    }
  }
  /// Closes unidentified connections that are late, and those on which nobody answers pings.
  void look(clock::time_point now) {
    if (now < next_look_) return;
    next_look_ = now + std::chrono::milliseconds(look_every);
    std::vector<connection> ended;
    for (const auto& [socket, c] : connections_) {
      const bool is_alive = c->with([&](message_link& link, auto&) {
        link.check_life(now, limits_.pings);
        return !link.has_ended();
      });
      if (!is_alive || (!c->is_of_member && now - c->since >= time_to_join)) ended.push_back(c);
    }
    for (const connection& c : ended) drop(c);
  }

  void serve_ready() {
    std::array<::epoll_event, 64> ready;
    const int count = ::epoll_wait(watch_->number(), ready.data(), int(ready.size()), 0);
    for (int i = 0; i < count; ++i)
      if (const auto found = connections_.find(ready[std::size_t(i)].data.fd); found != connections_.end())
        serve(connection(found->second));
  }
  /// Reads and answers requests, until no more have come or it is the turn of other connections.
  void serve(const connection& c) {
    if (const auto found = connections_.find(c->socket()); found == connections_.end() || found->second != c) return;
    try {
      for (int turn = 0; turn < most_at_a_time; ++turn) {
        bool has_ended = false;
        const std::optional<received_frame> f = c->with([&](message_link& link, auto& calls) {
          link.set_largest(c->is_of_member ? limits_.largest_message : std::min(limits_.largest_message, largest_of_unknown));
          link.flush();
          std::optional<received_frame> next;
          if (!link.is_congested()) next = link.receive();
          if (next && next->head.kind == frame_kind::ping) link.send(frame_kind::pong);
          has_ended = link.has_ended() || calls.size() > limits_.calls;
          return next;
        });
        if (has_ended) return drop(c);
        if (!f) return;
        take(c, *f);
      }
      busy_.push_back(c);
    } catch (const std::exception&) {
      drop(c);  // as in accept_from
    }
  }
  void take(const connection& c, const received_frame& f) {
    const std::uint32_t number = f.head.call;
    if (f.head.kind == frame_kind::cancel) {
      std::shared_ptr<served_call> ended;
      c->with([&](message_link&, auto& calls) {
        if (auto found = calls.extract(number)) ended = std::move(found.mapped());
      });
      if (ended) service_.forget(*ended);
    } else if (f.head.kind == frame_kind::request) {
      std::shared_ptr<served_call> call;
      std::string wrong;
      try {
        if (!f.is_whole())
          throw wire::malformed_message("message", text_of({"it has ", f.head.bytes, " bytes, more than a process that is ",
                                                            c->is_of_member ? "a member" : "no member", " may send"}));
        wire::envelope received(f.content());
        call = std::make_shared<served_call>(c, number, f.method(), received.from());
        if (c->with([&](message_link&, auto& calls) { return calls.emplace(number, call).second; }))
          service_.handle(call, received);
        return;
      } catch (const wire::malformed_message& e) {
        wrong = e.what();
      }
      if (call) return call->refuse(status_code::invalid_argument, wrong);
      c->with([&](message_link& link, auto&) {
        link.send({.call = number, .kind = frame_kind::answer, .code = status_code::invalid_argument}, {}, {wrong, {}});
      });
    }
  }
  void drop(const connection& c) {
    connections_.erase(c->socket());
    const auto calls = c->with([](message_link& link, auto& all) {
      link.end("the server has closed the connection");
      return std::exchange(all, {});
    });
    for (const auto& [number, call] : calls) service_.forget(*call);
    if (c->when_it_ends) c->when_it_ends();
  }
  void send_rest() {
    for (const auto until = clock::now() + time_to_end; clock::now() < until;) {
      bool has_more = false;
      for (const auto& [socket, c] : connections_)
        has_more |= c->with([](message_link& link, auto&) { return link.flush(), link.has_to_write(); });
      if (!has_more) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  static constexpr int most_at_a_time = 64, look_every = 200;  // milliseconds
  static constexpr std::chrono::milliseconds time_to_end{500};
  static constexpr unsigned time_to_take = 30'000;  // milliseconds, for the other side to take what was sent

  const admission admission_;
  message_service& service_;
  const server_limits limits_;
  const std::size_t most_;
  std::vector<io::file_descriptor> listeners_;
  io::file_descriptor wake_;
  served_connection::epoll watch_;
  strangers strangers_;
  connection_queue<stream> waiting_;
  std::unordered_map<int, connection> connections_;
  std::vector<connection> busy_;  // have more to read
  clock::time_point next_look_{};
  std::atomic<bool> stops_ = false;
  std::thread thread_;
};

}  // namespace strata::detail
