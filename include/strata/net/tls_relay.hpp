// Carries bytes between TLS connections and local sockets, for a library that speaks over sockets without TLS. Needs OpenSSL.
// needs: grpc
#pragma once
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <strata/base/error.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/net/tls_stream.hpp>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace strata::detail {

/// One thread for any number of connections.
class tls_relay {
  using clock = std::chrono::steady_clock;

 public:
  /// `buffered`: bytes in each direction of a connection.
  explicit tls_relay(std::size_t buffered = 1 << 14)
      : buffered_(buffered), events_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (!events_ || !wake_) throw_error("cannot watch connections: the process has too many open files");
    watch(wake_.number(), EPOLLIN);
    thread_ = std::thread([this] { run(); });
  }
  ~tls_relay() {
    stops_ = true;
    wake();
    thread_.join();
  }
  tls_relay(const tls_relay&) = delete;
  tls_relay& operator=(const tls_relay&) = delete;

  /// Takes a connection whose two sides have greeted each other. Returns the socket that stands for it; -1: there are too many
  /// open files. The connection ends when either end of it is closed.
  int add(std::unique_ptr<tls_stream> stream) {
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return -1;
    io::file_descriptor near(ends[0]), handed(ends[1]);
    ::setsockopt(stream->socket(), IPPROTO_TCP, TCP_USER_TIMEOUT, &time_to_take, sizeof time_to_take);
    auto added = std::make_unique<link>();
    added->far = std::move(stream);
    added->near = std::move(near);
    added->to_near.bytes.resize(buffered_), added->to_far.bytes.resize(buffered_);
    {
      const std::lock_guard lock(mutex_);
      added_.push_back(std::move(added));
    }
    wake();
    return std::move(handed).release();
  }
  /// The number of open connections.
  std::size_t size() const { return size_; }

 private:
  struct buffer {
    std::vector<std::byte> bytes;
    std::size_t begin = 0, end = 0;
    bool is_empty() const { return begin == end; }
  };
  struct link {
    std::unique_ptr<tls_stream> far;
    io::file_descriptor near;
    buffer to_near{}, to_far{};
    bool near_has_ended = false, far_has_ended = false, is_busy = false;
  };
  static constexpr std::chrono::milliseconds time_to_end{500};
  static constexpr unsigned time_to_take = 30'000;  // milliseconds, for the other side to take what was sent
  static constexpr int most_rounds = 32;            // for one connection, until the others have their turn

  void wake() {
    const std::uint64_t one = 1;
    (void)!::write(wake_.number(), &one, sizeof one);
  }
  void watch(int file, std::uint32_t events) {
    ::epoll_event e{};
    e.events = events, e.data.fd = file;
    ::epoll_ctl(events_.number(), EPOLL_CTL_ADD, file, &e);
  }

  void run() {
    std::array<::epoll_event, 64> happened;
    // Bytes that were written before the end are still sent.
    auto last = clock::time_point::max();
    for (bool ends = false; !ends || (!links_.empty() && clock::now() < last);) {
      const int pause = !busy_.empty() ? 0 : ends ? 10 : -1;
      const int count = ::epoll_wait(events_.number(), happened.data(), int(happened.size()), pause);
      for (int i = 0; i < count; ++i) {
        const int file = happened[std::size_t(i)].data.fd;
        if (file == wake_.number())
          take_added();
        else if (const auto found = by_file_.find(file); found != by_file_.end())
          serve(*found->second);
      }
      // Checked after take_added, which may have read the bytes with which the destructor wakes this thread.
      if (!ends && stops_) ends = true, last = clock::now() + time_to_end, take_added();
      for (link* l : std::exchange(busy_, {}))
        if (links_.contains(l)) l->is_busy = false, serve(*l);
    }
  }
  void take_added() {
    std::uint64_t count = 0;
    (void)!::read(wake_.number(), &count, sizeof count);
    std::vector<std::unique_ptr<link>> added;
    {
      const std::lock_guard lock(mutex_);
      added.swap(added_);
    }
    for (auto& a : added) {
      link* const l = a.get();
      by_file_[l->far->socket()] = by_file_[l->near.number()] = l;
      // Edge-triggered, because `serve` continues until nothing can be moved.
      watch(l->far->socket(), EPOLLIN | EPOLLOUT | EPOLLET);
      watch(l->near.number(), EPOLLIN | EPOLLOUT | EPOLLET);
      links_[l] = std::move(a);
      size_ = links_.size();
      serve(*l);
    }
  }

  /// Moves bytes as far as possible without waiting.
  void serve(link& l) {
    for (int round = 0; round < most_rounds; ++round) {
      const bool moved_near = to_near(l), moved = to_far(l) || moved_near;
      const bool near_is_over = l.near_has_ended && l.to_far.is_empty(), far_is_over = l.far_has_ended && l.to_near.is_empty();
      if (near_is_over || far_is_over) {
        if (!l.far_has_ended) l.far->end();
        return drop(l);
      }
      if (!moved) return;
    }
    if (!std::exchange(l.is_busy, true)) busy_.push_back(&l);
  }
  static bool to_near(link& l) {
    bool moved = false;
    buffer& b = l.to_near;
    if (b.is_empty() && !l.far_has_ended) {
      b.begin = b.end = 0;
      while (b.end < b.bytes.size()) {
        const stream_progress p = l.far->read(b.bytes.data() + b.end, b.bytes.size() - b.end);
        b.end += p.bytes;
        if (p.is_closed || p.is_broken) l.far_has_ended = true;
        if (p.bytes == 0) break;
        moved = true;
      }
    }
    while (!b.is_empty()) {
      const ::ssize_t sent = ::send(l.near.number(), b.bytes.data() + b.begin, b.end - b.begin, MSG_NOSIGNAL);
      if (sent <= 0) {
        if (errno != EAGAIN && errno != EINTR) b.begin = b.end = 0;  // what was written before the end is still read
        break;
      }
      b.begin += std::size_t(sent), moved = true;
    }
    return moved;
  }
  static bool to_far(link& l) {
    bool moved = false;
    buffer& b = l.to_far;
    if (b.is_empty() && !l.near_has_ended) {
      b.begin = b.end = 0;
      const ::ssize_t got = ::recv(l.near.number(), b.bytes.data(), b.bytes.size(), 0);
      if (got > 0) b.end = std::size_t(got), moved = true;
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) l.near_has_ended = true;
    }
    while (!b.is_empty()) {
      const stream_progress p = l.far->write(b.bytes.data() + b.begin, b.end - b.begin);
      b.begin += p.bytes;
      if (p.is_closed || p.is_broken) b.begin = b.end = 0;  // what came before the end is still read
      if (p.bytes == 0) break;
      moved = true;
    }
    return moved;
  }
  void drop(link& l) {
    by_file_.erase(l.far->socket());
    by_file_.erase(l.near.number());
    links_.erase(&l);  // its files leave the watch when they are closed
    size_ = links_.size();
  }

  const std::size_t buffered_;
  io::file_descriptor events_, wake_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<link>> added_;
  std::unordered_map<link*, std::unique_ptr<link>> links_;
  std::unordered_map<int, link*> by_file_;
  std::vector<link*> busy_;  // have more to move
  std::atomic<std::size_t> size_ = 0;
  std::atomic<bool> stops_ = false;
  std::thread thread_;
};

}  // namespace strata::detail
