// What a process waits for, for its heartbeats to report, and how another thread ends that wait.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <strata/concepts/communicator.hpp>
#include <strata/distribute/wire/field.hpp>
#include <string>
#include <utility>

namespace strata {

/// One thread waits; any other may read what it waits for, or interrupt it for good: this wait and all later ones then throw.
class wait_state {
  using clock = std::chrono::steady_clock;

 public:
  struct report {
    int on = -1;                             // the process it waits for; -1: none
    std::string what{};                      // "gradients"
    std::chrono::milliseconds waited{};      // in this wait, so far
    std::chrono::milliseconds altogether{};  // in all waits since the process began

    static constexpr auto message_name = "report of waiting";
    using fields = wire::fields<wire::field<1, &report::on>, wire::field<2, &report::what>, wire::field<3, &report::waited>,
                                wire::field<4, &report::altogether>>;
  };

  /// Around a wait that lasts longer than a message should take. `what` is a string literal.
  class scope {
   public:
    scope(wait_state& of, const char* what, int on) : of_(of), began_(clock::now()) {
      of_.since_.store(began_.time_since_epoch().count(), std::memory_order_relaxed);
      of_.what_.store(what, std::memory_order_relaxed);
      of_.on_.store(on, std::memory_order_relaxed);
    }
    ~scope() {
      of_.on_.store(-1, std::memory_order_relaxed);
      of_.altogether_.fetch_add((clock::now() - began_).count(), std::memory_order_relaxed);
    }
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;

   private:
    wait_state& of_;
    clock::time_point began_;
  };

  /// The first reason counts. `on` is the process to blame; -1: unknown.
  void interrupt(std::string why, int on = -1) {
    const std::lock_guard lock(mutex_);
    if (interrupted_.load(std::memory_order_relaxed)) return;
    why_ = std::move(why);
    culprit_ = on;
    interrupted_.store(true, std::memory_order_relaxed);
  }
  bool is_interrupted() const { return interrupted_.load(std::memory_order_relaxed); }
  void throw_if_interrupted() const {
    if (is_interrupted()) throw communication_error(why());
  }
  std::string why() const {
    const std::lock_guard lock(mutex_);
    return why_;
  }
  /// An error that another process has announced, with whose it is; empty: none. It interrupts no wait: that program may go on.
  void set_trouble(std::string what) {
    const std::lock_guard lock(mutex_);
    trouble_ = std::move(what);
  }
  std::string trouble() const {
    const std::lock_guard lock(mutex_);
    return trouble_;
  }
  /// While another process does work for which this one may have to wait, however long it takes, no time passes for waits.
  void stop_time(bool stops) {
    const std::lock_guard lock(mutex_);
    const auto now = clock::now();
    if (stopped_at_) stood_ += now - *stopped_at_;
    stopped_at_.reset();
    if (stops) stopped_at_ = now;
  }
  bool time_stands() const {
    const std::lock_guard lock(mutex_);
    return stopped_at_.has_value();
  }
  /// The time on which waits have their deadlines.
  clock::time_point time() const {
    const std::lock_guard lock(mutex_);
    return stopped_at_.value_or(clock::now()) - stood_;
  }
  int culprit() const {
    const std::lock_guard lock(mutex_);
    return culprit_;
  }

  report now() const {
    report r{.on = on_.load(std::memory_order_relaxed)};
    std::int64_t altogether = altogether_.load(std::memory_order_relaxed);
    if (r.on >= 0) {
      const std::int64_t waited = clock::now().time_since_epoch().count() - since_.load(std::memory_order_relaxed);
      r.what = what_.load(std::memory_order_relaxed);
      r.waited = in_milliseconds(waited);
      altogether += waited;
    }
    r.altogether = in_milliseconds(altogether);
    return r;
  }

 private:
  static std::chrono::milliseconds in_milliseconds(std::int64_t ticks) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(clock::duration(ticks));
  }

  std::atomic<int> on_{-1};
  std::atomic<const char*> what_{""};
  std::atomic<std::int64_t> since_{0}, altogether_{0};
  std::atomic<bool> interrupted_{false};
  mutable std::mutex mutex_;
  std::string why_, trouble_;
  std::optional<clock::time_point> stopped_at_;
  clock::duration stood_{};
  int culprit_ = -1;
};

}  // namespace strata
