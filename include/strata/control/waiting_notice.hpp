// Notices of a process that waits for others: after 2 s, then each time the wait has doubled.
#pragma once
#include <algorithm>
#include <chrono>
#include <functional>
#include <strata/base/text.hpp>
#include <string>

namespace strata::detail {

class waiting_notice {
 public:
  using clock = std::chrono::steady_clock;
  using milliseconds = std::chrono::milliseconds;
  using listener = std::function<void(const std::string&)>;

  /// `timeout`: the time limit of the wait.
  waiting_notice(const listener& tell, milliseconds timeout, milliseconds first = std::chrono::seconds(2))
      : tell_(tell), timeout_(timeout), next_(first) {}

  /// The time until the next notice, or until the time-out.
  milliseconds pause() const { return std::max(std::min(next_, timeout_) - waited(), milliseconds(0)); }
  milliseconds left() const { return std::max(timeout_ - waited(), milliseconds(0)); }
  /// "worker 1 waits for worker 0" becomes "worker 1 waits for worker 0: 2 s of 300 s". Does nothing before it is due.
  void tell(const std::string& what) {
    const milliseconds now = waited();
    if (now < next_ || now >= timeout_) return;
    while (next_ <= now) next_ *= 2;
    if (tell_)
      tell_(formatted("%s: %.0f s of %.0f s", what.c_str(), double(now.count()) / 1000, double(timeout_.count()) / 1000));
  }

 private:
  milliseconds waited() const { return std::chrono::duration_cast<milliseconds>(clock::now() - began_); }

  const listener& tell_;
  milliseconds timeout_, next_;
  clock::time_point began_ = clock::now();
};

}  // namespace strata::detail
