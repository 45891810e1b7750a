// A worker's place at a parameter server: a call that stays open, and is made anew when the connection breaks or the server is
// started again.
// needs: grpc
#pragma once
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <strata/concepts/communicator.hpp>
#include <strata/distribute/control/control_channel.hpp>
#include <strata/distribute/parameter_server/parameter_message.hpp>
#include <string>
#include <thread>
#include <utility>

namespace strata::detail {

/// When this process dies, the server sees the call end. This side waits for a second answer, which never comes, to see it as
/// well, in a thread of its own: a worker that computes for a long time comes back before anybody takes it for dead.
class parameter_membership {
  using clock = std::chrono::steady_clock;

 public:
  /// `name` is for the words: "ps 1 at node7:2222".
  parameter_membership(std::string name, grpc::GenericStub& stub, const parameter_header& own, std::string program,
                       std::chrono::milliseconds retry_for)
      : name_(std::move(name)), stub_(stub), own_(own), program_(std::move(program)), retry_for_(retry_for) {}
  ~parameter_membership() { leave(); }
  parameter_membership(const parameter_membership&) = delete;
  parameter_membership& operator=(const parameter_membership&) = delete;

  /// The first time. Throws communication_error if the server does not come in time, strata::error if it refuses.
  void join(std::chrono::milliseconds timeout) {
    open(timeout, " does not answer within ");
    joins_ = 1;
    thread_ = std::thread([this] { stay(); });
  }
  /// How often this worker has joined.
  long joins() {
    const std::lock_guard lock(mutex_);
    return joins_;
  }
  /// Whether it has joined more often than that; waits so long for news, and for as long as the server may be out of reach if
  /// the connection is broken. Throws communication_error if it stays so, strata::error if the server refuses.
  bool has_joined_again(long before, std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    news_.wait_for(lock, patience, [&] { return joins_ > before || away_; });
    if (away_) news_.wait_until(lock, away_since_ + retry_for_, [&] { return !away_ || final_; });
    if (away_) {
      if (failure_ && final_) std::rethrow_exception(failure_);
      throw communication_error(name_ + " is gone: it takes no connection within " + std::to_string(retry_for_.count()) +
                                " ms");
    }
    return joins_ > before;
  }

 private:
  struct stream {
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call;
    grpc::ByteBuffer message;

    /// What has been begun: whether it went well, in time.
    bool done(std::chrono::system_clock::time_point until) {
      void* tag = nullptr;
      bool ok = false;
      if (queue.AsyncNext(&tag, &ok, until) == grpc::CompletionQueue::GOT_EVENT) return ok;
      context.TryCancel();
      queue.Next(&tag, &ok);
      return false;
    }
    bool done() {
      void* tag = nullptr;
      bool ok = false;
      return queue.Next(&tag, &ok) && ok;
    }
    /// The last call.
    grpc::Status finish() {
      grpc::Status status;
      call->Finish(&status, this);
      done();
      return status;
    }
  };

  void open(std::chrono::milliseconds timeout, const char* otherwise) {
    const auto until = std::chrono::system_clock::now() + timeout;
    auto opened = std::make_shared<stream>();
    stream& s = *opened;
    {
      const std::lock_guard lock(mutex_);
      if (leaves_) throw communication_error(name_ + " is left");
      stream_ = opened;
    }
    s.context.set_wait_for_ready(true);
    s.call = stub_.PrepareCall(&s.context, parameter_methods::join, &s.queue);
    s.call->StartCall(&s);
    bool ok = s.done(until);
    if (ok) {
      const grpc::Slice slices[] = {grpc::Slice(&own_, sizeof own_), grpc::Slice(program_)};
      s.call->Write(grpc::ByteBuffer(slices, 2), &s);
      ok = s.done(until);
    }
    if (ok) {
      s.call->Read(&s.message, &s);
      ok = s.done(until);
    }
    if (ok) return s.call->Read(&s.message, &s);
    const grpc::Status status = s.finish();
    if (status.error_code() == grpc::StatusCode::FAILED_PRECONDITION) throw error(status.error_message());
    throw communication_error(name_ + otherwise + std::to_string(timeout.count()) + " ms" +
                              (status.error_code() == grpc::StatusCode::CANCELLED ? "" : ": " + status.error_message()));
  }

  void stay() {
    for (;;) {
      stream_->done();
      stream_->finish();
      {
        const std::lock_guard lock(mutex_);
        if (leaves_) return;
        away_ = true;
        away_since_ = clock::now();
        news_.notify_all();
      }
      while (away_) try {
          open(retry_for_, " takes no connection within ");
          const std::lock_guard lock(mutex_);
          away_ = false;
          ++joins_;
          news_.notify_all();
        } catch (const communication_error&) {  // it may come later
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

  /// Says so if the server is there: it has to know that this worker is not lost.
  void leave() noexcept {
    if (!thread_.joinable()) return;
    bool there = false;
    {
      const std::lock_guard lock(mutex_);
      there = !away_;
    }
    if (there) {
      grpc::ClientContext context;
      // A server that hangs is found out by then: servers are left one after the other.
      context.set_deadline(std::chrono::system_clock::now() + ping_after + ping_timeout);
      const grpc::Slice slice(&own_, sizeof own_);
      grpc::ByteBuffer answer;
      unary_call(stub_, context, parameter_methods::leave, grpc::ByteBuffer(&slice, 1), answer);
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
  grpc::GenericStub& stub_;
  const parameter_header own_;
  const std::string program_;
  const std::chrono::milliseconds retry_for_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::shared_ptr<stream> stream_;
  long joins_ = 0;
  bool away_ = false, leaves_ = false, final_ = false;
  clock::time_point away_since_{};
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace strata::detail
