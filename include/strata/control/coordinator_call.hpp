// A request to the coordinator. Needs gRPC and protozero.
// needs: grpc protozero
#pragma once
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <strata/control/callers.hpp>
#include <strata/control/control_messages.hpp>
#include <strata/control/member.hpp>
#include <strata/net/envelope.hpp>
#include <string>

namespace strata::control {

class coordinator_call;

/// The owner of calls. Each call notifies it of its events.
class call_owner {
 public:
  virtual const std::shared_ptr<detail::callers>& who_calls() const = 0;
  /// The message of a call has come.
  virtual void handle(coordinator_call& c, const wire::envelope& received) = 0;
  /// A call was cancelled. Returns true if it was waiting. Then the owner no longer has the call, which ends itself.
  virtual bool forget(coordinator_call& c) = 0;

 protected:
  ~call_owner() = default;
};

/// One request, whose answer may come later. It deletes itself when gRPC needs it no longer.
class coordinator_call final : public grpc::ServerGenericBidiReactor {
  using clock = std::chrono::steady_clock;

 public:
  coordinator_call(call_owner& owner, grpc::GenericCallbackServerContext& context)
      : owner_(owner), context_(context), method(context.method()) {
    owner_.who_calls()->begins(context_);
    StartRead(&message_);
  }
  void OnReadDone(bool ok) override {
    owner_.who_calls()->has_spoken(context_);
    if (!ok) return Finish({grpc::StatusCode::INVALID_ARGUMENT, "the call has no message"});
    try {
      const wire::envelope received(message_);
      message_.Clear();  // the call may wait for long
      from = received.from();
      owner_.handle(*this, received);
    } catch (const wire::malformed_message& e) {
      Finish({grpc::StatusCode::INVALID_ARGUMENT, e.what()});
    }
  }
  void OnCancel() override {
    if (owner_.forget(*this)) Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override { delete this; }
  void answer(const grpc::Status& status, const grpc::ByteBuffer& body) {
    if (!status.ok()) return Finish(status);
    message_ = body;
    StartWriteAndFinish(&message_, {}, grpc::Status::OK);
  }
  bool is_cancelled() const { return context_.IsCancelled(); }
  void is_of_member() const { owner_.who_calls()->is_member(context_); }

 private:
  call_owner& owner_;
  grpc::GenericCallbackServerContext& context_;
  grpc::ByteBuffer message_;

 public:
  const std::string method;
  wire::sender from{};
  bool knows_failure = false;                        // of its generation; a heartbeat
  std::uint64_t knows_notice = 0;                    // likewise
  member who{};                                      // of a late process
  clock::time_point due = clock::time_point::max();  // when it gets an answer at the latest
  std::string awaited{};                             // the key whose value it waits for
  get_all_request wanted{};                          // of get_all
  int found = 0;                                     // the first values that get_all wants are there
};

}  // namespace strata::control
