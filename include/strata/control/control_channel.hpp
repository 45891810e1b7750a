// Calls of the control plane and of parameter servers: unary calls, and detection of a server that has ended. Needs gRPC.
// needs: grpc protozero
#pragma once
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <string>

namespace strata {

namespace detail {
/// Keepalive pings, which detect that the other process or the network is gone.
inline constexpr std::chrono::milliseconds ping_after{2000}, ping_timeout{2000};

/// One request and its answer, within the deadline of the context.
inline grpc::Status unary_call(grpc::GenericStub& stub, grpc::ClientContext& context, const std::string& method,
                               const grpc::ByteBuffer& message, grpc::ByteBuffer& answer) {
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareUnaryCall(&context, method, message, &queue);
  call->StartCall();
  grpc::Status status;
  call->Finish(&answer, &status, &status);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return status;
}

/// Tells a server that is gone from one that cannot be reached for a while. Where no process listens any more, the system refuses
/// each connection at once; a network that is down does not answer.
class refused_connections {
  using time = std::chrono::steady_clock::time_point;
  time since_ = time::max();

 public:
  static bool is_one(const grpc::Status& status) { return status.error_message().find("onnection refused") != std::string::npos; }
  /// The result of one attempt.
  void add(const grpc::Status& status, time now) { since_ = is_one(status) ? std::min(since_, now) : time::max(); }
  /// 500 ms are time for five attempts: gRPC makes longer and longer pauses between them.
  bool are_final(time now) const { return since_ != time::max() && now - since_ >= std::chrono::milliseconds(500); }
};
}  // namespace detail
}  // namespace strata
