// Waits at a parameter server: when a worker may continue after its push, and when a wait has become pointless.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <strata/base/text.hpp>
#include <strata/control/roster.hpp>
#include <strata/parameter_server/staleness.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace strata::detail {

/// The state of a worker in one shard.
struct worker_clock {
  std::uint64_t incarnation = 0;
  std::int64_t last_step = -1;  // that was applied
  std::int64_t progress = 0;    // pushes so far, on top of those that the slowest worker had made when this one joined
};

/// A request that has no answer yet.
struct waiting_request {
  int worker = 0;
  std::int64_t step = -1;  // of a push; -1: a pull
  control::roster::time since{};
};

/// The staleness policy, applied to the requests of one shard.
class waiting_rules {
 public:
  using time = control::roster::time;

  /// `workers`: their names. `timeout`: how long one waits for others. `lost_after`: how long a worker whose connection broke may
  /// take to come back.
  waiting_rules(staleness_policy staleness, std::vector<std::string> workers, std::chrono::milliseconds timeout,
                std::chrono::milliseconds lost_after)
      : staleness_(staleness), workers_(std::move(workers)), timeout_(timeout), lost_after_(lost_after) {}

  /// The least progress of the other present workers; 0 if there are none.
  static std::int64_t slowest(std::span<const worker_clock> clocks, const control::roster& who, int worker) {
    std::int64_t least = -1;
    for (std::size_t r = 0; r < clocks.size(); ++r) {
      if (int(r) == worker || !who.is_present(int(r)) || !who.find(int(r), clocks[r].incarnation)) continue;
      least = least < 0 ? clocks[r].progress : std::min(least, clocks[r].progress);
    }
    return std::max<std::int64_t>(least, 0);
  }

  /// `version`: updates of the shard; -1: it has no weights.
  bool may_go_on(const waiting_request& r, std::int64_t version, std::span<const worker_clock> clocks,
                 const control::roster& who) const {
    if (version < 0) return false;
    if (r.step < 0) return true;
    if (is_synchronous(staleness_)) return version > r.step;
    if (const auto* bounded = std::get_if<bounded_staleness>(&staleness_)) {
      if (!has_company(who, r.worker)) return true;
      return clocks[std::size_t(r.worker)].progress - slowest(clocks, who, r.worker) <= bounded->steps;
    }
    return true;
  }

  /// The reason why the request will not be answered; empty: it may be. `has_pushed(worker)` returns whether the worker's
  /// gradient of the current synchronous step has arrived.
  template <class HasPushed>
  std::string futile(const waiting_request& r, std::int64_t version, std::span<const worker_clock> clocks,
                     const control::roster& who, HasPushed&& has_pushed, time now) const {
    const std::string waited = text_of({std::chrono::duration_cast<std::chrono::seconds>(now - r.since).count(), " s"});
    const bool is_too_long = now - r.since > timeout_;
    if (r.step < 0 || version < 0) {
      if (std::string trouble = trouble_of(who.find(0)); !trouble.empty()) return trouble;
      return is_too_long ? text_of({workers_[0], " has not assigned the weights within ", waited}) : "";
    }
    const bool sync = is_synchronous(staleness_);
    const std::string step = text_of({"step ", r.step});
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      const bool lags =
          sync ? !has_pushed(w) : who.is_present(int(w)) && clocks[w].progress < clocks[std::size_t(r.worker)].progress;
      if (!lags) continue;
      const control::roster::entry* const e = who.find(int(w));
      if (std::string trouble = trouble_of(e); sync && !trouble.empty()) return trouble;
      if (sync && e && e->is == control::presence::left) return text_of({name_of(int(w), who), " has left before ", step});
      if (sync && e && e->is == control::presence::lost && now - e->heard > lost_after_)
        return text_of({name_of(int(w), who), " is gone: it did not push ", step});
      if (is_too_long)
        return text_of(
            {name_of(int(w), who), " has kept ", step, " of ", workers_[std::size_t(r.worker)], " waiting for ", waited});
    }
    return "";
  }

  /// The reason why a worker that has left or is lost has ended, as a message; empty: it is present, or has not given one.
  static std::string trouble_of(const control::roster::entry* e) {
    return e && e->is != control::presence::present && !e->trouble.empty() ? control::ends_because_of(e->who, e->trouble) : "";
  }
  /// The name of a worker, with rank, host and pid once it has joined.
  std::string name_of(int worker, const control::roster& who) const {
    const control::roster::entry* const e = who.find(worker);
    return e ? to_string(e->who) : workers_[std::size_t(worker)];
  }

 private:
  static bool has_company(const control::roster& who, int worker) {
    return std::ranges::any_of(
        who.all(), [&](const auto& one) { return one.first != worker && one.second.is == control::presence::present; });
  }

  staleness_policy staleness_;
  std::vector<std::string> workers_;
  std::chrono::milliseconds timeout_, lost_after_;
};

}  // namespace strata::detail
