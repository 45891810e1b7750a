// The callers of a server: connections of members, and calls that have not sent a message yet. Needs gRPC.
// needs: grpc
#pragma once
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstddef>
#include <list>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>

namespace strata::detail {

/// Records the callers of a server, so that a member never waits for others. Thread-safe.
class callers {
  using clock = std::chrono::steady_clock;
  struct silent_call {
    grpc::GenericCallbackServerContext* context;
    clock::time_point since;
  };
  mutable std::mutex members_mutex_;
  std::set<std::string> members_;      // connections, by gRPC's names for their other sides
  std::recursive_mutex silent_mutex_;  // gRPC may call back at once; a service takes its own lock after it, never before
  std::list<silent_call> silent_;      // the oldest first
  std::unordered_map<const void*, std::list<silent_call>::iterator> by_context_;

 public:
  static constexpr std::size_t most_silent = 1 << 12;
  static constexpr std::chrono::seconds time_to_speak{5};

  /// Called when a member has called.
  void is_member(const grpc::GenericCallbackServerContext& context) {
    std::string name = context.peer();
    const std::lock_guard lock(members_mutex_);
    members_.insert(std::move(name));
  }
  bool has_member(const std::string& connection) const {
    const std::lock_guard lock(members_mutex_);
    return members_.contains(connection);
  }
  void forget(const std::string& connection) {
    const std::lock_guard lock(members_mutex_);
    members_.erase(connection);
  }

  /// Called when a call begins. If too many calls of others than members have not sent a message yet, the oldest of them ends.
  void begins(grpc::GenericCallbackServerContext& context) {
    if (has_member(context.peer())) return;
    const std::lock_guard lock(silent_mutex_);
    by_context_[&context] = silent_.insert(silent_.end(), {&context, clock::now()});
    if (silent_.size() > most_silent) end_oldest();
  }
  /// Called when a call has sent its first message, or has ended.
  void has_spoken(const grpc::GenericCallbackServerContext& context) {
    const std::lock_guard lock(silent_mutex_);
    const auto found = by_context_.find(&context);
    if (found == by_context_.end()) return;
    silent_.erase(found->second);
    by_context_.erase(found);
  }
  /// Ends the calls that have been silent for too long.
  void end_late(clock::time_point now) {
    const std::lock_guard lock(silent_mutex_);
    while (!silent_.empty() && now - silent_.front().since >= time_to_speak) end_oldest();
  }

 private:
  void end_oldest() {
    grpc::GenericCallbackServerContext* const context = silent_.front().context;
    by_context_.erase(context);
    silent_.pop_front();
    context->TryCancel();
  }
};

}  // namespace strata::detail
