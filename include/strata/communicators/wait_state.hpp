// The current wait of a process, for its heartbeats to report, and the means by which another thread ends it.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <strata/base/error.hpp>
#include <strata/base/text.hpp>
#include <strata/concepts/communicator.hpp>
#include <strata/net/field.hpp>
#include <string>
#include <utility>

namespace strata::core {

/// A call on devices that ends when all processes have begun it. All of them begin the same calls in the same order.
struct shared_call {
  std::int64_t number = 0;  // from 1 on; 0: this process computes it alone
  const char* what = "";    // a string literal: "a training step"
  int samples = 0;
};
inline std::string to_string(const shared_call& call) { return detail::text_of({call.what, " of ", call.samples, " samples"}); }

/// One thread waits; any other may read what it waits for, or interrupt it for good: this wait and all later ones then throw.
class wait_state {
  using clock = std::chrono::steady_clock;

 public:
  struct report {
    int on = -1;                             // the process it waits for; -1: none
    std::string what{};                      // "gradients"
    std::chrono::milliseconds waited{};      // in this wait, so far
    std::chrono::milliseconds altogether{};  // in all waits since the process began
    std::int64_t calls = 0;                  // that it has begun on devices together with the others
    std::int64_t call = 0;                   // the one whose end it waits for; 0: none
    std::string what_call{};                 // "a training step of 64 samples"
    std::chrono::milliseconds call_waited{};

    static constexpr auto message_name = "report of waiting";
    using fields =
        wire::fields<wire::field<1, &report::on>, wire::field<2, &report::what>, wire::field<3, &report::waited>,
                     wire::field<4, &report::altogether>, wire::field<5, &report::calls>, wire::field<6, &report::call>,
                     wire::field<7, &report::what_call>, wire::field<8, &report::call_waited>>;
  };

  /// Lives during a wait that lasts longer than a message should take. `what` is a string literal.
  class scope {
   public:
    scope(wait_state& of, const char* what, int on) : of_(of), began_(clock::now()) {
      of_.since_.store(began_.time_since_epoch().count(), std::memory_order_relaxed);
      of_.what_.store(what, std::memory_order_relaxed);
      of_.on_.store(on, std::memory_order_release);  // last, so that a thread that reads it also sees since_
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

  /// Lives during a wait for the end of a shared call.
  class call_scope {
   public:
    call_scope(wait_state& of, const shared_call& call) : of_(of) {
      of_.call_since_.store(clock::now().time_since_epoch().count(), std::memory_order_release);
      of_.call_what_.store(call.what, std::memory_order_release);
      of_.call_samples_.store(call.samples, std::memory_order_release);
      of_.call_.store(call.number, std::memory_order_release);
    }
    ~call_scope() { of_.call_.store(0, std::memory_order_relaxed); }
    call_scope(const call_scope&) = delete;
    call_scope& operator=(const call_scope&) = delete;

   private:
    wait_state& of_;
  };
  /// This process has begun shared calls up to this number.
  void set_calls(std::int64_t number) { calls_.store(number, std::memory_order_relaxed); }

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
    if (is_interrupted()) throw_exception(communication_error(why()));
  }
  std::string why() const {
    const std::lock_guard lock(mutex_);
    return why_;
  }
  /// Records an error that another process has announced, with its name; empty: none. No wait ends, as that program may continue.
  void set_trouble(std::string what) {
    const std::lock_guard lock(mutex_);
    trouble_ = std::move(what);
  }
  std::string trouble() const {
    const std::lock_guard lock(mutex_);
    return trouble_;
  }
  /// Stops or continues the time of waits: it stands while another process does work for which this one may have to wait.
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
  /// The time by which the deadlines of waits are measured.
  clock::time_point time() const {
    const std::lock_guard lock(mutex_);
    return stopped_at_.value_or(clock::now()) - stood_;
  }
  int culprit() const {
    const std::lock_guard lock(mutex_);
    return culprit_;
  }

  report now() const {
    report r{.on = on_.load(std::memory_order_acquire)};
    std::int64_t altogether = altogether_.load(std::memory_order_relaxed);
    if (r.on >= 0) {
      const std::int64_t waited = clock::now().time_since_epoch().count() - since_.load(std::memory_order_relaxed);
      r.what = what_.load(std::memory_order_relaxed);
      r.waited = in_milliseconds(waited);
      altogether += waited;
    }
    r.altogether = in_milliseconds(altogether);
    r.calls = calls_.load(std::memory_order_relaxed);
    if (const std::int64_t number = call_.load(std::memory_order_acquire); number > 0) {
      const std::int64_t since = call_since_.load(std::memory_order_acquire);
      const shared_call call{number, call_what_.load(std::memory_order_acquire), call_samples_.load(std::memory_order_acquire)};
      // Otherwise that wait has ended meanwhile, and some of this may be of the next call: a scope sets the number last.
      if (call_.load(std::memory_order_relaxed) == number) {
        r.call = number, r.what_call = to_string(call);
        r.call_waited = in_milliseconds(clock::now().time_since_epoch().count() - since);
      }
    }
    return r;
  }

 private:
  static std::chrono::milliseconds in_milliseconds(std::int64_t ticks) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(clock::duration(ticks));
  }

  std::atomic<int> on_{-1};
  std::atomic<const char*> what_{""};
  std::atomic<std::int64_t> since_{0}, altogether_{0};
  std::atomic<std::int64_t> calls_{0}, call_{0}, call_since_{0};
  std::atomic<const char*> call_what_{""};
  std::atomic<int> call_samples_{0};
  std::atomic<bool> interrupted_{false};
  mutable std::mutex mutex_;
  std::string why_, trouble_;
  std::optional<clock::time_point> stopped_at_;
  clock::duration stood_{};
  int culprit_ = -1;
};

}  // namespace strata::core
