// A thread that sends heartbeats to the coordinator, and interrupts this process when the run has failed. Needs OpenSSL
// and protozero.
// needs: openssl protozero
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <strata/base/text.hpp>
#include <strata/communicators/wait_state.hpp>
#include <strata/control/coordinator_client.hpp>
#include <strata/control/server_connection.hpp>
#include <strata/net/call_status.hpp>
#include <string>
#include <thread>
#include <utility>

namespace strata::control {

/// Sends heartbeats of a member that has joined. When it is destroyed, the member leaves.
class heartbeat {
  using clock = std::chrono::steady_clock;

 public:
  /// `interrupt` is called from another thread, with the reason, if a member reports a failure, or a member or the coordinator
  /// dies. A member that `survives` the failure of its generation sends heartbeats until it is in the next one.
  heartbeat(coordinator_client& client, std::shared_ptr<core::wait_state> waits,
            std::function<void(const std::string&)> interrupt, bool survives = false)
      : client_(client), waits_(std::move(waits)), interrupt_(std::move(interrupt)), survives_(survives), thread_([this] {
          beat_on();
        }) {}
  ~heartbeat() {
    if (!thread_.joinable()) return;
    // The failure of a generation is known, and the exception may be its consequence.
    if (std::uncaught_exceptions() > 0 && said_.trouble.empty() && !has_failed_)
      announce_error("an exception outside of fit and evaluate, see its own output");
    client_.leave();
    stop();
  }
  /// Ends the heartbeats without leaving.
  void stop() {
    client_.stop_beating();
    thread_.join();
  }
  /// Announces to the others an error with which this program may end; empty: it continues.
  void announce_error(const std::string& trouble) {
    if (said_.trouble == trouble) return;
    said_.trouble = trouble;
    announce();
  }
  /// Tells the others about work for which they may have to wait; empty: it is done.
  void announce_work(const std::string& what) {
    said_.work = what;
    announce();
  }
  /// True if the thread has ended, because the coordinator or the run has.
  bool has_ended() const { return ended_; }
  /// The time since the thread ended; 0 if it has not.
  clock::duration ended_for() const { return has_ended() ? clock::now() - ended_at_ : clock::duration(); }
  heartbeat(const heartbeat&) = delete;
  heartbeat& operator=(const heartbeat&) = delete;

 private:
  void announce() {
    if (!has_ended()) client_.announce(said_);
  }
  void beat_on() {
    std::string why;
    try {
      why = run();
    } catch (const std::exception& e) {
      // For example, an answer is not understood. An exception that leaves the thread ends the program.
      why = e.what();
    }
    ended_at_ = clock::now();
    ended_ = true;
    if (!why.empty()) report_failure(why);
  }
  void report_failure(const std::string& why) {
    has_failed_ = true;
    interrupt_(why);
  }
  /// Returns the reason why the heartbeats end; empty if they end regularly.
  std::string run() {
    const auto interval = client_.heartbeat().interval, patience = client_.heartbeat().missed * interval;
    auto answered = clock::now();
    constexpr auto never = clock::time_point::max();
    auto unreachable = never;  // since this time
    detail::refused_connections refused;
    bool asks_again = false, knows = false;
    std::uint64_t knows_notice = 0;
    for (;;) {
      const auto [status, told] = client_.beat(waits_->now(), knows, knows_notice,
                                               std::max(answered + patience - interval / 2, clock::now() + interval / 2));
      const auto now = clock::now();
      refused.add(status, now);
      switch (status.code) {
        case detail::status_code::ok:
          answered = now, asks_again = false;
          if (std::exchange(knows_notice, told.number) != told.number) {
            waits_->set_trouble(told.trouble);
            waits_->stop_time(!told.work.empty());
          }
          unreachable = never;
          continue;
        case detail::status_code::cancelled:  // this process ends in good order,
          return {};
        case detail::status_code::out_of_range:  // or the coordinator does
          return waits_->trouble();
        case detail::status_code::aborted:
          if (!survives_ || std::exchange(knows, true)) return status.text;
          report_failure(status.text);
          continue;
        case detail::status_code::failed_precondition:
          return status.text;
        case detail::status_code::deadline_exceeded:
          if (!std::exchange(asks_again, true)) continue;  // this process itself may have been stopped
          break;
        default:
          unreachable = std::min(unreachable, now);
          if (now - unreachable < interval && !refused.are_final(now)) {
            std::this_thread::sleep_for(std::min<clock::duration>(std::chrono::milliseconds(100), interval / 4));
            continue;
          }
      }
      if (const std::string trouble = waits_->trouble(); !trouble.empty()) return trouble;
      const auto silence = std::chrono::duration_cast<std::chrono::milliseconds>(now - answered);
      return detail::text_of({"the coordinator at ", to_string(client_.where()), " is lost: no answer for ", silence.count(),
                              " ms (", status.text, ")"});
    }
  }

  coordinator_client& client_;
  std::shared_ptr<core::wait_state> waits_;
  std::function<void(const std::string&)> interrupt_;
  bool survives_;
  clock::time_point ended_at_{};  // once ended_ is true
  std::atomic<bool> ended_{false}, has_failed_{false};
  announcement said_;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace strata::control
