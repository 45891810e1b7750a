// The answers that follow from a message to the coordinator, or from time that has passed. Needs gRPC and protozero.
// needs: grpc protozero
#pragma once
#include <grpcpp/grpcpp.h>

#include <strata/control/control_messages.hpp>
#include <strata/control/coordinator_call.hpp>
#include <strata/control/status_text.hpp>
#include <strata/net/envelope.hpp>
#include <string>
#include <vector>

namespace strata::control {

/// Collects answers while the coordinator is locked. They are sent after the lock is released, because gRPC may call back at
/// once.
class coordinator_answers {
  struct one {
    coordinator_call* to;
    grpc::Status status;
    grpc::ByteBuffer body;
  };
  std::vector<one> all_;

 public:
  template <wire::message M>
  void add(coordinator_call& to, const M& body) {
    all_.push_back({&to, grpc::Status::OK, wire::sealed(body)});
  }
  void add(coordinator_call& to) { add(to, empty_message{}); }
  void add_sealed(coordinator_call& to, const grpc::Slice& body) {
    all_.push_back({&to, grpc::Status::OK, grpc::ByteBuffer(&body, 1)});
  }
  void refuse(coordinator_call& to, grpc::StatusCode code, const std::string& why) {
    all_.push_back({&to, detail::status_of(code, why), {}});
  }
  void send() {
    for (const one& a : all_) a.to->answer(a.status, a.body);
  }
};

}  // namespace strata::control
