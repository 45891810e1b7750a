// A thread that tells the coordinator every few seconds that this process is alive, and ends its waiting when the run has failed.
// needs: grpc
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <strata/distribute/communicators/wait_state.hpp>
#include <strata/distribute/control/coordinator_client.hpp>
#include <string>
#include <thread>
#include <utility>

namespace strata {

/// From a member that has joined, until it is destroyed; then the member leaves.
class heartbeat {
  using clock = std::chrono::steady_clock;

 public:
  /// `interrupt` is called from another thread, with the reason, if another member or the coordinator dies or reports a failure. One
  /// that `survives` the failure of its generation says that it is alive until it is in the next one.
  heartbeat(coordinator_client& client, std::shared_ptr<const wait_state> waits, std::function<void(const std::string&)> interrupt,
            bool survives = false)
      : client_(client), waits_(std::move(waits)), interrupt_(std::move(interrupt)), survives_(survives), thread_([this] { beat_on(); }) {}
  ~heartbeat() {
    if (!thread_.joinable()) return;
    client_.leave();
    stop();
  }
  /// Without leaving.
  void stop() {
    client_.stop_beating();
    thread_.join();
  }
  /// There is nobody who would listen any more.
  bool has_ended() const { return ended_; }
  heartbeat(const heartbeat&) = delete;
  heartbeat& operator=(const heartbeat&) = delete;

 private:
  void beat_on() {
    std::string why = run();
    ended_ = true;
    if (!why.empty()) interrupt_(why);
  }
  /// Returns why it cannot go on, or nothing where the end is in good order.
  std::string run() {
    const auto interval = client_.heartbeat().interval, patience = client_.heartbeat().missed * interval;
    auto answered = clock::now();
    constexpr auto never = clock::time_point::max();
    auto unreachable = never;  // since when
    detail::refused_connections refused;
    bool asks_again = false, knows = false;
    for (;;) {
      const grpc::Status status =
          client_.beat(waits_->now(), knows, std::max(answered + patience - interval / 2, clock::now() + interval / 2));
      const auto now = clock::now();
      refused.add(status, now);
      switch (status.error_code()) {
        case grpc::StatusCode::OK:
          answered = now, asks_again = false;
          unreachable = never;
          continue;
        case grpc::StatusCode::CANCELLED:  // this process ends,
        case grpc::StatusCode::OUT_OF_RANGE: return {};  // or the coordinator does, in good order
        case grpc::StatusCode::ABORTED:
          if (!survives_ || std::exchange(knows, true)) return status.error_message();
          interrupt_(status.error_message());
          continue;
        case grpc::StatusCode::FAILED_PRECONDITION: return status.error_message();
        case grpc::StatusCode::DEADLINE_EXCEEDED:
          if (!std::exchange(asks_again, true)) continue;  // it may have been this process that stood still
          break;
        default:
          unreachable = std::min(unreachable, now);
          if (now - unreachable < interval && !refused.are_final(now)) {
            std::this_thread::sleep_for(std::min<clock::duration>(std::chrono::milliseconds(100), interval / 4));
            continue;
          }
      }
      const auto silence = std::chrono::duration_cast<std::chrono::milliseconds>(now - answered);
      return "the coordinator at " + to_string(client_.where()) + " is lost: no answer for " + std::to_string(silence.count()) + " ms (" +
             status.error_message() + ")";
    }
  }

  coordinator_client& client_;
  std::shared_ptr<const wait_state> waits_;
  std::function<void(const std::string&)> interrupt_;
  bool survives_;
  std::atomic<bool> ended_{false};
  std::thread thread_;  // begins when all else is there
};

}  // namespace strata
