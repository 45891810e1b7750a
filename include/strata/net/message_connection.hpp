// message_connection: calls of a server over one connection, by any number of threads.
#pragma once
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <strata/base/text.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/io/file_descriptor.hpp>
#include <strata/net/call_status.hpp>
#include <strata/net/message_link.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace strata::detail {

/// The end of a call.
struct reply {
  call_status status{};
  received_frame frame{};  // with status ok
};
struct ended_call {
  std::uint64_t tag = 0;  // of the caller
  reply end{};
};

/// Ends of calls, in the order in which they come. Thread-safe.
class reply_queue {
  using time = std::chrono::steady_clock::time_point;
  std::mutex mutex_;
  std::condition_variable has_one_;
  std::deque<ended_call> all_;

 public:
  void add(ended_call r) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(r));
    has_one_.notify_all();
  }
  /// The next one; nothing: none has come until then.
  std::optional<ended_call> take(time until) {
    std::unique_lock lock(mutex_);
    if (!has_one_.wait_until(lock, until, [&] { return !all_.empty(); })) return {};
    ended_call first = std::move(all_.front());
    all_.pop_front();
    return first;
  }
};

/// Has a thread that waits for answers. Messages are written by the threads that call.
class message_connection {
  using clock = std::chrono::steady_clock;

 public:
  /// The link has been greeted.
  explicit message_connection(std::unique_ptr<message_link> link)
      : link_(std::move(link)), wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (!wake_) throw communication_error("this process has too many open files");
    thread_ = std::thread([this] { run(); });
  }
  ~message_connection() {
    close();
    thread_.join();
  }
  message_connection(const message_connection&) = delete;
  message_connection& operator=(const message_connection&) = delete;

  /// Begins a call. Its end is added to `to`, with the tag. Returns its number.
  std::uint32_t call(std::string_view method, wire::sealed_message message, std::shared_ptr<reply_queue> to, std::uint64_t tag) {
    const std::lock_guard lock(mutex_);
    const std::uint32_t number = ++calls_;
    if (has_ended_) {
      to->add({tag, {{status_code::unavailable, link_->why()}, {}}});
      return number;
    }
    under_way_[number] = {std::move(to), tag};
    link_->send({.call = number, .kind = frame_kind::request}, method, std::move(message));
    if (link_->has_to_write()) wake();
    return number;
  }
  /// The server is told that nobody waits for the answer.
  void cancel(std::uint32_t number) {
    const std::lock_guard lock(mutex_);
    if (under_way_.erase(number) == 0 || has_ended_) return;
    link_->send(frame_kind::cancel, number);
    if (link_->has_to_write()) wake();
  }
  bool has_ended() const { return closes_ || has_ended_; }
  void wait_until_ended() {
    std::unique_lock lock(mutex_);
    ends_.wait(lock, [&] { return has_ended_.load(); });
  }
  /// Ends the connection.
  void close() {
    closes_ = true;
    wake();
  }

 private:
  static constexpr int look_every = 200;  // milliseconds

  void wake() const {
    const std::uint64_t one = 1;
    (void)!::write(wake_.number(), &one, sizeof one);
  }
  void run() {
    short events = POLLIN;
    while (events != 0) {
      ::pollfd on[] = {{link_->socket(), events, 0}, {wake_.number(), POLLIN, 0}};
      ::poll(on, 2, look_every);
      std::uint64_t count = 0;
      if (on[1].revents) (void)!::read(wake_.number(), &count, sizeof count);
      const std::lock_guard lock(mutex_);
      try {
        events = go_on();
      } catch (const std::exception& e) {  // there is no memory
        link_->end(e.what());
        events = 0;
      }
    }
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    for (auto& [number, waits] : under_way_) waits.to->add({waits.tag, {{status_code::unavailable, link_->why()}, {}}});
    under_way_.clear();
    ends_.notify_all();
  }
  /// Returns the events to wait for; 0: the connection has ended.
  short go_on() {
    if (closes_) link_->end("this process has closed the connection");
    link_->flush();
    while (std::optional<received_frame> f = link_->receive()) {
      if (f->head.kind == frame_kind::ping) link_->send(frame_kind::pong);
      if (f->head.kind != frame_kind::answer) continue;
      const auto found = under_way_.find(f->head.call);
      if (found == under_way_.end()) continue;  // it was cancelled
      const auto [to, tag] = std::exchange(found->second, {});
      under_way_.erase(found);
      call_status status{f->head.code};
      if (!f->is_whole()) status = {status_code::resource_exhausted, text_of({"the answer has ", f->head.bytes, " bytes"})};
      if (!status.ok() && f->is_whole()) status.text = f->content();
      to->add({tag, {std::move(status), std::move(*f)}});
    }
    link_->check_life(clock::now(), {});
    return link_->has_ended() ? short(0) : link_->events();
  }

  struct call_under_way {
    std::shared_ptr<reply_queue> to;
    std::uint64_t tag;
  };
  std::mutex mutex_;
  std::condition_variable ends_;
  std::unique_ptr<message_link> link_;
  io::file_descriptor wake_;
  std::uint32_t calls_ = 0;
  std::unordered_map<std::uint32_t, call_under_way> under_way_;
  std::atomic<bool> closes_ = false, has_ended_ = false;
  std::thread thread_;
};

/// The calls of one thread, over any number of connections. Those that have not ended are cancelled at its end.
class calls_of_thread {
  using time = std::chrono::steady_clock::time_point;
  struct one {
    std::uint64_t id, tag;
    std::shared_ptr<message_connection> over;
    std::uint32_t number;
    time deadline;
  };
  std::shared_ptr<reply_queue> replies_ = std::make_shared<reply_queue>();
  std::vector<one> under_way_;
  std::uint64_t begun_ = 0;

 public:
  static constexpr const char* no_answer = "there is no answer";

  calls_of_thread() = default;
  ~calls_of_thread() {
    for (const one& o : under_way_) o.over->cancel(o.number);
  }
  calls_of_thread(const calls_of_thread&) = delete;
  calls_of_thread& operator=(const calls_of_thread&) = delete;

  void begin(std::shared_ptr<message_connection> over, std::string_view method, wire::sealed_message message, time deadline,
             std::uint64_t tag = 0) {
    const std::uint64_t id = ++begun_;
    const std::uint32_t number = over->call(method, std::move(message), replies_, id);
    under_way_.push_back({id, tag, std::move(over), number, deadline});
  }
  bool empty() const { return under_way_.empty(); }
  /// The next call that ends, also because its time is up; nothing: none has ended until then. There must be one.
  std::optional<ended_call> next(time until = time::max()) {
    for (;;) {
      const auto due = std::ranges::min_element(under_way_, {}, &one::deadline);
      std::optional<ended_call> r = replies_->take(std::min(until, due->deadline));
      if (!r && until < due->deadline) return {};
      if (!r) r = ended_call{due->id, {{status_code::deadline_exceeded, no_answer}, {}}};
      const auto ended = std::ranges::find(under_way_, r->tag == 0 ? due->id : r->tag, &one::id);
      if (ended == under_way_.end()) continue;  // its time was up
      if (r->end.frame.head.kind != frame_kind::answer) ended->over->cancel(ended->number);
      r->tag = ended->tag;
      under_way_.erase(ended);
      return r;
    }
  }
  /// Called by another thread: the next call ends as cancelled.
  void cancel() { replies_->add({0, {{status_code::cancelled}, {}}}); }
};

/// One call and its end.
inline reply call_and_wait(std::shared_ptr<message_connection> over, std::string_view method, wire::sealed_message message,
                           std::chrono::steady_clock::time_point deadline) {
  calls_of_thread calls;
  calls.begin(std::move(over), method, std::move(message), deadline);
  return std::move(calls.next()->end);
}

}  // namespace strata::detail
