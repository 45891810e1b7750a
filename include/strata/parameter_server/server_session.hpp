// A worker's session with one parameter server: a call that stays open, and is opened again after the connection breaks or the
// server is restarted. Needs gRPC and protozero.
// needs: grpc protozero
#pragma once
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <strata/base/text.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/control/control_channel.hpp>
#include <strata/control/control_messages.hpp>
#include <strata/control/deadline.hpp>
#include <strata/control/server_connection.hpp>
#include <strata/control/waiting_notice.hpp>
#include <strata/net/envelope.hpp>
#include <strata/parameter_server/parameter_messages.hpp>
#include <string>
#include <thread>
#include <utility>

namespace strata::detail {

/// When this process dies, the call ends in the server. A thread of this process waits for a second answer, which never comes, to
/// detect the end as well and join again at once: a worker that computes for a long time must not be declared dead.
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
  /// The stub of the connection over which this worker last joined.
  server_connection::stub stub() {
    const std::lock_guard lock(mutex_);
    return calls_;
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
    grpc::ClientContext context;
    context.set_deadline(detail::deadline_in(std::chrono::seconds(1)));
    grpc::ByteBuffer answer;
    unary_call(*stub(), context, parameter_methods::announce, wire::sealed(self_, control::announcement{what}), answer);
  }

 private:
  struct stream {
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call;
    grpc::ByteBuffer message;

    /// Waits for the operation that was begun. Returns whether it succeeded in time.
    bool done(waiting_notice& notice, const std::string& what) {
      void* tag = nullptr;
      bool ok = false;
      const auto give_up = [&] {
        context.TryCancel();
        queue.Next(&tag, &ok);
      };
      do {
        if (queue.AsyncNext(&tag, &ok, detail::deadline_in(notice.pause())) == grpc::CompletionQueue::GOT_EVENT) return ok;
        try {
          notice.tell(what);
        } catch (...) {  // gRPC uses this object until the operation has ended
          give_up();
          throw;
        }
      } while (notice.left() > std::chrono::milliseconds(0));
      give_up();
      return false;
    }
    bool done() {
      void* tag = nullptr;
      bool ok = false;
      return queue.Next(&tag, &ok) && ok;
    }
    /// The last operation.
    grpc::Status finish() {
      grpc::Status status;
      call->Finish(&status, this);
      done();
      return status;
    }
  };

  void open(std::chrono::milliseconds timeout, const char* failure, const waiting_notice::listener& on_waiting = {}) {
    waiting_notice notice(on_waiting, timeout);
    const std::string what = text_of({"waits for ", name_});
    auto opened = std::make_shared<stream>();
    stream& s = *opened;
    {
      const std::lock_guard lock(mutex_);
      if (leaves_) throw communication_error(text_of({"this worker has left ", name_}));
      stream_ = opened;
    }
    server_connection::attempt way;
    call_status why;  // that this process is refused says more than that a later attempt took too long
    while (!(way = connection_.open(clock::now() + notice.left())).calls) {
      if (why.error_code() != grpc::StatusCode::UNAUTHENTICATED) why = way.why;
      if (notice.left() == std::chrono::milliseconds(0) || has_left())
        throw communication_error(text_of({name_, failure, timeout.count(), " ms: ", why.error_message()}));
      notice.tell(with_reason(what, why));
      std::this_thread::sleep_for(std::min(notice.left(), std::chrono::milliseconds(50)));
    }
    s.call = way.calls->PrepareCall(&s.context, parameter_methods::join, &s.queue);
    s.call->StartCall(&s);
    bool ok = s.done(notice, what);
    if (ok) {
      s.call->Write(wire::sealed(self_, control::join_request{who_, timeout}), &s);
      ok = s.done(notice, what);
    }
    if (ok) {
      s.call->Read(&s.message, &s);
      ok = s.done(notice, what);
    }
    if (ok) {
      const std::lock_guard lock(mutex_);
      calls_ = way.calls;
      return s.call->Read(&s.message, &s);
    }
    const grpc::Status status = s.finish();
    connection_.drop(way.calls);
    if (status.error_code() == grpc::StatusCode::FAILED_PRECONDITION) throw_error(status.error_message());
    throw communication_error(
        text_of({name_, failure, timeout.count(), " ms",
                 status.error_code() == grpc::StatusCode::CANCELLED ? "" : text_of({": ", status.error_message()})}));
  }

  bool has_left() {
    const std::lock_guard lock(mutex_);
    return leaves_;
  }

  void stay() {
    for (;;) {
      stream_->done();
      stream_->finish();
      connection_.drop(stub());
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
      grpc::ClientContext context;
      // Servers are left one after the other; a server that hangs must not delay this for longer than its pings.
      context.set_deadline(detail::deadline_in(ping_after + ping_timeout));
      grpc::ByteBuffer answer;
      unary_call(*stub(), context, parameter_methods::leave, wire::sealed(self_, control::empty_message{}), answer);
    }
    {
      const std::lock_guard lock(mutex_);
      leaves_ = true;
      stream_->context.TryCancel();
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
  std::shared_ptr<stream> stream_;
  server_connection::stub calls_;
  long joins_ = 0;
  bool away_ = false, leaves_ = false, final_ = false;
  clock::time_point away_since_{};
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace strata::detail
