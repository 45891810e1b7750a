// Processes on any machines, over TCP: the thread that waits reads and writes the sockets itself. Needs protozero; Linux only.
// needs: protozero
#pragma once
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <strata/base/text.hpp>
#include <strata/communicators/key_value_store.hpp>
#include <strata/communicators/message_memory.hpp>
#include <strata/communicators/message_queue.hpp>
#include <strata/communicators/tcp_mesh.hpp>
#include <strata/communicators/wait_state.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/net/byte_stream.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace strata {

struct tcp_options {
  std::string host = "127.0.0.1";                                 // name or address of this process for the others
  std::chrono::milliseconds timeout = std::chrono::seconds(30);   // for connecting, and for a wait in which too little moves
  std::shared_ptr<const detail::socket_protection> protection{};  // null: messages are neither signed nor encrypted
};

/// Copies are the same end of the same connections. After an error every wait throws. There is no thread of its own: messages
/// move while a thread sends or waits. A waiting thread polls the sockets for about as long as waking up would take, then sleeps
/// until one is ready. In each `timeout` of a wait the awaited process has to finish a message, or to move 64 KiB of it.
class tcp_communicator {
  using clock = std::chrono::steady_clock;
  static constexpr auto spinning = std::chrono::microseconds(100);
  static constexpr std::uint64_t least_bytes = 64 << 10;  // that count as progress within a message

  /// The size, in eight bytes, is sent before the data.
  struct message {
    std::byte* data;
    std::uint64_t bytes;
    std::uint64_t number;  // of a receive: how many were begun before it
    std::uint64_t header;  // the size that is sent
    std::uint64_t moved;   // bytes so far, with the header's
  };
  struct peer : detail::tcp_connection {
    detail::message_queue<message> out{}, in{};
    std::uint64_t moved = 0;  // bytes in both directions
    std::uint64_t done = 0;   // messages, likewise
  };
  struct state {
    int rank = 0, size = 0;
    std::chrono::milliseconds timeout{};
    std::shared_ptr<core::wait_state> waits;
    std::vector<peer> peers;
    std::uint64_t receives = 0;        // begun
    io::file_descriptor interruption;  // readable once another thread has interrupted
    std::vector<pollfd> asked;
  };

 public:
  using memory = core::message_memory;

  /// Meets the other processes through the store: those of `with` (by rank), or all if it is empty. Throws communication_error if
  /// one does not connect in time.
  tcp_communicator(core::key_value_store& store, int rank, int size, tcp_options options = {},
                   std::shared_ptr<core::wait_state> waits = std::make_shared<core::wait_state>(), std::vector<bool> with = {})
      : state_(std::make_shared<state>()) {
    state& s = *state_;
    s.rank = rank, s.size = size, s.timeout = options.timeout, s.waits = std::move(waits);
    s.interruption = io::file_descriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    with.resize(std::size_t(size), with.empty());
    detail::tcp_mesh mesh(store, rank, size, options.host, with, options.timeout, options.protection.get(), *s.waits);
    for (auto& connection : std::move(mesh).take()) s.peers.push_back({std::move(connection)});
    s.asked.reserve(std::size_t(size) + 1);
  }

  int rank() const { return state_->rank; }
  int size() const { return state_->size; }
  static memory allocate(std::size_t bytes) { return memory(bytes); }

  /// The memory must stay in place until the message is done.
  void send(std::byte* from, std::size_t bytes, int to) {
    stop_if_interrupted();
    peer& p = state_->peers[std::size_t(to)];
    p.out.push({from, bytes, 0, bytes, 0});
    write(to, "a message");
  }
  void receive(std::byte* to, std::size_t bytes, int from) {
    state_->peers[std::size_t(from)].in.push({to, bytes, state_->receives++, 0, 0});
  }
  template <class Memory>
  void send(Memory& from, std::size_t offset, std::size_t bytes, int to) {
    send(from.data() + offset, bytes, to);
  }
  template <class Memory>
  void receive(Memory& to, std::size_t offset, std::size_t bytes, int from) {
    receive(to.data() + offset, bytes, from);
  }
  std::uint64_t begun() const { return state_->receives; }
  void wait_received(const char* what, std::uint64_t mark) { wait_until_moved(what, mark, false); }
  void wait(const char* what) { wait_until_moved(what, begun(), true); }

  /// Reads and writes what is possible without waiting. Returns whether there is more to do.
  bool go_on() {
    stop_if_interrupted();
    move("a message", 0, false);
    return std::ranges::any_of(state_->peers, [](const peer& p) { return !p.in.empty() || !p.out.empty(); });
  }

  /// Called by another thread: ends this wait and all later ones with an error that has this reason.
  void interrupt(const std::string& why) {
    state_->waits->interrupt(why);
    const std::uint64_t one = 1;
    (void)!::write(state_->interruption.number(), &one, sizeof one);
  }
  /// Drops all messages, because their memory may go away. The connections stay open until this object ends: if they were closed
  /// now, the others would blame this process before it has reported which one is lost.
  void stop() const {
    for (peer& p : state_->peers) p.in.clear(), p.out.clear();
  }

 private:
  static constexpr std::size_t header_bytes = sizeof(std::uint64_t);

  /// Waits until all receives before `mark` are done, and with `sends` all sends.
  void wait_until_moved(const char* what, std::uint64_t mark, bool sends) {
    stop_if_interrupted();
    int on = move(what, mark, sends);
    if (on < 0) return;
    const auto began = clock::now();
    do {
      ::sched_yield();  // the awaited one may need this core
      on = move(what, mark, sends);
      if (on < 0) return;
    } while (clock::now() - began < spinning);
    sleep_until_moved(what, mark, sends, on);
  }
  void sleep_until_moved(const char* what, std::uint64_t mark, bool sends, int on) {
    state& s = *state_;
    while (on >= 0) {
      const int awaited = on;
      const core::wait_state::scope told(*s.waits, what, awaited);
      const peer& other = s.peers[std::size_t(awaited)];
      const std::uint64_t moved = other.moved, done = other.done;
      const auto deadline = s.waits->time() + s.timeout;
      while (on == awaited && other.done == done && other.moved < moved + least_bytes) {
        s.asked.assign(1, {s.interruption.number(), POLLIN, 0});
        for (const peer& p : s.peers)
          if (const short events = short((p.in.empty() ? 0 : POLLIN) | (p.out.empty() ? 0 : POLLOUT)))
            s.asked.push_back({p.number(), events, 0});
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - s.waits->time());
        if (left.count() <= 0) {
          const std::string little = other.moved == moved
                                         ? "did not answer"
                                         : detail::text_of({"transferred only ", other.moved - moved, " bytes of a message"});
          fail(what, on, detail::text_of({little, " within ", s.timeout.count(), " ms"}));
        }
        ::poll(s.asked.data(), nfds_t(s.asked.size()), int(std::min<long>(left.count(), 1000)));
        stop_if_interrupted();
        on = move(what, mark, sends);
      }
    }
  }
  /// Reads and writes what is possible without waiting. Returns the process to wait for; -1: none.
  int move(const char* what, std::uint64_t mark, bool sends) {
    int on = -1;
    for (int r = 0; r < size(); ++r) {
      peer& p = state_->peers[std::size_t(r)];
      write(r, what);
      read(r, what);
      if ((!p.in.empty() && p.in.front().number < mark) || (sends && !p.out.empty())) on = on < 0 ? r : on;
    }
    return on;
  }
  void write(int to, const char* what) {
    peer& p = state_->peers[std::size_t(to)];
    while (!p.out.empty()) {
      message& m = p.out.front();
      const std::size_t moved = p.stream ? seal(*p.stream, m, what, to) : write_plain(p, m, what, to);
      if (moved == 0) return;
      m.moved += moved, p.moved += moved;
      if (m.moved >= m.bytes + header_bytes)
        p.out.pop(), ++p.done;
      else if (!p.stream)
        return;  // the socket is full
    }
  }
  void read(int from, const char* what) {
    peer& p = state_->peers[std::size_t(from)];
    while (!p.in.empty()) {
      message& m = p.in.front();
      const std::size_t moved = p.stream ? open(*p.stream, m, what, from) : read_plain(p, m, what, from);
      if (moved == 0) return;
      m.moved += moved, p.moved += moved;
      if (m.moved >= header_bytes && m.header != m.bytes)
        fail(what, from, detail::text_of({"sent ", m.header, " bytes instead of ", m.bytes}));
      if (m.moved >= m.bytes + header_bytes)
        p.in.pop(), ++p.done;
      else if (!p.stream)
        return;  // it is empty
    }
  }
  std::size_t write_plain(const peer& p, message& m, const char* what, int to) const {
    iovec parts[2];
    msghdr rest = rest_of(m, parts);
    const ssize_t moved = ::sendmsg(p.socket.number(), &rest, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (moved < 0) wait_or_fail(what, to);
    return std::size_t(std::max<ssize_t>(moved, 0));
  }
  std::size_t read_plain(const peer& p, message& m, const char* what, int from) const {
    iovec parts[2];
    msghdr rest = rest_of(m, parts);
    const ssize_t moved = ::recvmsg(p.socket.number(), &rest, MSG_DONTWAIT);
    if (moved < 0) wait_or_fail(what, from);
    if (moved == 0) fail(what, from, "has closed the connection");
    return std::size_t(std::max<ssize_t>(moved, 0));
  }
  /// The header and the first bytes are sealed together: most messages of a step are small.
  std::size_t seal(detail::byte_stream& stream, const message& m, const char* what, int to) const {
    const std::byte* from = m.data + m.moved - header_bytes;
    std::size_t bytes = m.bytes + header_bytes - m.moved;
    std::array<std::byte, 1 << 12> together;
    if (m.moved < header_bytes) {
      const std::size_t of_header = header_bytes - m.moved, of_data = std::min<std::size_t>(m.bytes, together.size() - of_header);
      std::memcpy(together.data(), reinterpret_cast<const std::byte*>(&m.header) + m.moved, of_header);
      if (of_data > 0) std::memcpy(together.data() + of_header, m.data, of_data);
      from = together.data(), bytes = of_header + of_data;
    }
    return moved_by(stream.write(from, bytes), stream, what, to);
  }
  std::size_t open(detail::byte_stream& stream, message& m, const char* what, int from) const {
    if (m.moved < header_bytes)
      return moved_by(stream.read(reinterpret_cast<std::byte*>(&m.header) + m.moved, header_bytes - m.moved), stream, what, from);
    return moved_by(stream.read(m.data + m.moved - header_bytes, m.bytes + header_bytes - m.moved), stream, what, from);
  }
  std::size_t moved_by(const detail::stream_progress& p, const detail::byte_stream& stream, const char* what, int on) const {
    if (p.is_closed) fail(what, on, "has closed the connection");
    if (p.is_broken) fail(what, on, detail::text_of({"is lost: ", stream.why_broken()}));
    return p.bytes;
  }
  /// The parts of header and bytes that have not moved yet.
  static msghdr rest_of(message& m, iovec (&parts)[2]) {
    const std::uint64_t of_header = std::min<std::uint64_t>(m.moved, header_bytes), of_bytes = m.moved - of_header;
    parts[0] = {reinterpret_cast<std::byte*>(&m.header) + of_header, header_bytes - of_header};
    parts[1] = {m.data + of_bytes, m.bytes - of_bytes};
    msghdr rest{};
    rest.msg_iov = parts, rest.msg_iovlen = 2;
    return rest;
  }
  void wait_or_fail(const char* what, int on) const {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return;
    fail(what, on, detail::text_of({"is lost: ", std::generic_category().message(errno)}));
  }

  void stop_if_interrupted() const {
    if (!state_->waits->is_interrupted()) return;
    stop();
    throw communication_error(state_->waits->why());
  }
  /// After an error messages are out of order, so all later ones fail.
  [[noreturn]] void fail(const char* what, int on, const std::string& why) const {
    state_->waits->interrupt(detail::text_of({what, ": process ", on, ", for which process ", rank(), " waits over TCP, ", why}),
                             on);
    stop();
    throw communication_error(state_->waits->why());
  }

  std::shared_ptr<state> state_;
};
static_assert(core::communicator<tcp_communicator>);

}  // namespace strata
