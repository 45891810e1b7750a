// A worker's session with one parameter server: it lasts as long as the connection, and begins again after that breaks or the
// server is restarted. Needs OpenSSL and protozero.
// needs: openssl protozero
#pragma once
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <strata/base/text.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/control/control_messages.hpp>
#include <strata/control/server_connection.hpp>
#include <strata/control/waiting_notice.hpp>
#include <strata/net/call_status.hpp>
#include <strata/net/envelope.hpp>
#include <strata/net/message_connection.hpp>
#include <strata/net/message_link.hpp>
#include <strata/parameter_server/parameter_messages.hpp>
#include <string>
#include <thread>
#include <utility>

namespace strata::detail {

/// When this process dies, its connection ends in the server. A thread of this process waits for that end, too, and joins again
/// at once: a worker that computes for a long time must not be declared dead.
class server_session {
  using clock = std::chrono::steady_clock;

 public:
  /// `name` names the server in errors: "ps 1 at node7:2222".
  server_session(std::string name, server_connection& connection, wire::sender self, control::member who,
                 std::chrono::milliseconds retry_for)
      : name_(std::move(name)), connection_(connection), self_(std::move(self)), who_(std::move(who)), retry_for_(retry_for) {}
  ~server_session() { leave(); }
  server_session(const server_session&) = delete;
  server_session& operator=(const server_session&) = delete;

  /// Joins for the first time. Throws communication_error if the server does not answer in time, strata_error if it
  /// refuses.
  void join(std::chrono::milliseconds timeout, const waiting_notice::listener& on_waiting = {}) {
    open(timeout, " does not answer within ", on_waiting);
    joins_ = 1;
    thread_ = std::thread([this] { stay(); });
  }
  /// The connection over which this worker last joined.
  std::shared_ptr<message_connection> connection() {
    const std::lock_guard lock(mutex_);
    return joined_;
  }
  /// The number of times that this worker has joined.
  long joins() {
    const std::lock_guard lock(mutex_);
    return joins_;
  }
  /// True if this worker has joined more than `before` times. Waits up to `patience` for that; if the connection is broken, as
  /// long as a server may be unreachable. Throws communication_error if it stays broken, strata_error if the server
  /// refuses.
  bool has_joined_again(long before, std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    news_.wait_for(lock, patience, [&] { return joins_ > before || away_; });
    if (away_) news_.wait_until(lock, away_since_ + retry_for_, [&] { return !away_ || final_; });
    if (away_) {
      if (failure_ && final_) std::rethrow_exception(failure_);
      throw communication_error(text_of({name_, " is gone: it accepted no connection within ", retry_for_.count(), " ms"}));
    }
    return joins_ > before;
  }

  /// Announces to the server, if it can be reached, an error with which this program may end; empty: it continues.
  void announce_error(const std::string& what) {
    {
      const std::lock_guard lock(mutex_);
      if (away_) return;
    }
    call_and_wait(connection(), parameter_methods::announce, wire::sealed(self_, control::announcement{what}),
                  clock::now() + std::chrono::seconds(1));
  }

 private:
  void open(std::chrono::milliseconds timeout, const char* failure, const waiting_notice::listener& on_waiting = {}) {
    waiting_notice notice(on_waiting, timeout);
    const std::string what = text_of({"waits for ", name_});
    server_connection::attempt way;
    call_status why;  // that this process is refused says more than that a later attempt took too long
    while (!(way = connection_.open(clock::now() + notice.left())).open) {
      if (why.code != status_code::unauthenticated) why = way.why;
      if (notice.left() == std::chrono::milliseconds(0) || has_left())
        throw communication_error(text_of({name_, failure, timeout.count(), " ms: ", why.text}));
      notice.tell(with_reason(what, why));
      std::this_thread::sleep_for(std::min(notice.left(), std::chrono::milliseconds(50)));
    }
    calls_of_thread calls;
    calls.begin(way.open, parameter_methods::join, wire::sealed(self_, control::join_request{who_, timeout}),
                clock::now() + notice.left());
    std::optional<ended_call> joined;
    while (!joined) {
      joined = calls.next(clock::now() + std::min(notice.pause(), std::chrono::milliseconds(100)));
      if (has_left()) throw communication_error(text_of({"this worker has left ", name_}));
      if (!joined) notice.tell(what);
    }
    const call_status& status = joined->end.status;
    if (status.ok()) {
      const std::lock_guard lock(mutex_);
      joined_ = way.open;
      return;
    }
    way.open->close();
    if (status.code == status_code::failed_precondition) throw_error(status.text);
    throw communication_error(text_of({name_, failure, timeout.count(), " ms",
                                       status.code == status_code::deadline_exceeded ? "" : text_of({": ", status.text})}));
  }

  bool has_left() {
    const std::lock_guard lock(mutex_);
    return leaves_;
  }

  void stay() {
    for (;;) {
      connection()->wait_until_ended();
      {
        const std::lock_guard lock(mutex_);
        if (leaves_) return;
        away_ = true;
        away_since_ = clock::now();
        news_.notify_all();
      }
      while (away_) try {
          open(retry_for_, " accepted no connection within ");
          const std::lock_guard lock(mutex_);
          away_ = false;
          ++joins_;
          news_.notify_all();
        } catch (const communication_error&) {  // the server may come back later
          std::unique_lock lock(mutex_);
          if (news_.wait_for(lock, std::chrono::milliseconds(50), [&] { return leaves_; })) return;
        } catch (...) {
          const std::lock_guard lock(mutex_);
          failure_ = std::current_exception();
          final_ = true;
          news_.notify_all();
          return;
        }
    }
  }

  /// Notifies the server if it can be reached; otherwise it would consider this worker lost. A chief that ends because of an
  /// error counts as lost: if it left, the training would be over, and the servers would delete their snapshots.
  void leave() noexcept {
    if (!thread_.joinable()) return;
    bool tells = who_.rank > 0 || std::uncaught_exceptions() == 0;
    {
      const std::lock_guard lock(mutex_);
      tells = tells && !away_;
    }
    if (tells) {
      // Servers are left one after the other; a server that hangs must not delay this for longer than its pings.
      const ping_times pings;
      call_and_wait(connection(), parameter_methods::leave, wire::sealed(self_, control::empty_message{}),
                    clock::now() + pings.after + pings.timeout);
    }
    {
      const std::lock_guard lock(mutex_);
      leaves_ = true;
      joined_->close();
      news_.notify_all();
    }
    thread_.join();
  }

  const std::string name_;
  server_connection& connection_;
  const wire::sender self_;
  const control::member who_;
  const std::chrono::milliseconds retry_for_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::shared_ptr<message_connection> joined_;
  long joins_ = 0;
  bool away_ = false, leaves_ = false, final_ = false;
  clock::time_point away_since_{};
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace strata::detail
