// One generation of a synchronous training in the coordinator: who waits for whom, and why the generation has failed.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <strata/base/text.hpp>
#include <strata/communicators/wait_state.hpp>
#include <strata/control/control_messages.hpp>
#include <strata/control/roster.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata {

struct heartbeat_options {
  std::chrono::milliseconds interval = std::chrono::seconds(2);
  int missed = 3;  // heartbeats in a row; then the process counts as dead
};

}  // namespace strata

namespace strata::control {

/// A generation is incomplete until all members have joined, then complete, then perhaps failed. A failed generation never
/// recovers, so a process that was declared dead cannot come back into it. This class reads no clock and uses no network; it is
/// not thread-safe.
class membership {
 public:
  using time = roster::time;
  static constexpr int most_members = 1 << 14;

  explicit membership(heartbeat_options options = {}) : options_(options) {}
  /// A generation that follows another one is complete from the start. Its members keep their ranks, so ranks may be missing.
  /// all: in the order in which communicators number them; the last ones are spares.
  membership(heartbeat_options options, const std::vector<member>& all, agreement agreed, time now, int spares = 0)
      : options_(options), agreed_(std::move(agreed)), size_(int(all.size())), spares_(spares), window_began_(now) {
    for (const member& m : all) {
      admit(m, now);
      order_.push_back(m.rank);
    }
  }

  /// Returns the reason why the process may not take part, or nothing. Two processes that disagree fail an incomplete generation;
  /// a complete one refuses the newcomer and continues.
  std::optional<std::string> join(const member& m, time now) {
    if (m.size < 1 || m.size > most_members || m.rank < 0 || m.rank >= m.size)
      return detail::text_of({"there is no rank ", m.rank, " in a cluster of ", m.size, " processes"});
    if (auto* e = roster_.find(m.rank, m.incarnation)) {  // asks again
      if (!is_complete()) roster::hear(*e, now), e->is_connected = true;
      return {};
    }
    const bool was_complete = is_complete();
    std::string problem;
    if (const auto* e = roster_.find(m.rank)) {
      problem = detail::text_of({"two processes claim to be rank ", m.rank, ": ", to_string(e->who), " and ", to_string(m)});
    } else if (!roster_.all().empty()) {
      const member& first = roster_.all().begin()->second.who;
      if (m.agreement != agreed_)
        problem = disagreement(to_string(m), detail::text_of({to_string(first), " does"}), m.agreement, agreed_);
    }
    if (!problem.empty()) {
      if (!was_complete) set_failure(problem, now);
      return was_complete
                 ? detail::text_of({problem, "; a process that has been restarted needs a new generation of the cluster"})
                 : problem;
    }
    if (roster_.all().empty()) agreed_ = m.agreement;
    size_ = m.size;
    admit(m, now);
    absent_.erase(m.rank);
    if (is_complete()) {
      for (auto& [rank, e] : roster_.all()) e.heard = now;
      window_began_ = now;
    }
    return {};
  }
  bool is_complete() const { return size_ > 0 && int(roster_.all().size()) == size_; }

  /// Returns why a message of that process is refused, or nothing.
  std::optional<std::string> refuses(int rank, std::uint64_t incarnation) const {
    if (roster_.find(rank, incarnation)) return {};
    return detail::text_of({"this process, with rank ", rank,
                            ", does not belong to this generation of the cluster: the chief was lost and has been "
                            "restarted, or the others go on without this process"});
  }

  /// A heartbeat of a member.
  void beat(int rank, const core::wait_state::report& waits, time now, std::uint64_t knows_notice = 0) {
    roster::entry& e = at(rank);
    if (e.is == presence::present) e.heard = now;
    e.is_connected = true;
    reports_[rank].waits = waits;
    reports_[rank].reported = now;
    reports_[rank].knows_notice = knows_notice;
    const auto* on = find_process(waits.on);
    if (on && on->is == presence::left && waits.waited >= options_.interval && now - on->heard >= options_.interval)
      fail(rank, waits.on, detail::text_of({waits.what, ": ", to_string(on->who), " has left the training"}), now);
    if (waits.call > 0 && waits.call_waited >= 2 * options_.interval) refuse_endless_call(e.who, waits, now);
  }
  /// The member no longer waits for the others to join, unless it repeats its request at once.
  void pause(int rank, time now) {
    roster::entry& e = at(rank);
    e.is_connected = false, e.heard = now;
  }
  /// The member leaves; if it announced an error, the generation fails with it.
  void leave(int rank, time now) {
    if (!is_complete()) return remove(rank, true);
    roster::leave(at(rank), now);
    if (const auto found = troubles_.find(rank); found != troubles_.end()) set_failure(found->second, now);
  }
  /// The member may have died, or may reconnect at once: it has one interval for that.
  void lose_connection(int rank, time now) {
    if (!is_complete()) return remove(rank, false);
    roster::entry& e = at(rank);
    e.heard = std::min(e.heard, now - (options_.missed - 1) * options_.interval);
    e.is_connected = false;
  }
  /// A member reports an error. `on` is the process that it blames, or -1.
  void fail(int rank, int on, const std::string& why, time now) {
    if (!failure_.empty()) return;
    std::string text = why;
    if (const auto* blamed = find_process(on); blamed && why.find(to_string(blamed->who)) == why.npos)
      text += detail::text_of({"; process ", on, " is ", to_string(blamed->who)});
    if (const auto* e = roster_.find(rank)) text += detail::text_of({", says ", e->who.name});
    set_failure(text, now, is_complete() ? diagnosis(now) : "");
  }
  /// Sets the status of a member. If it announces an error, and the generation fails, that error is the reason.
  void announce(int rank, const announcement& what, time now) {
    const auto before = std::pair(first_trouble(), first_work());
    const member& who = at(rank).who;
    const auto keep = [&](std::map<int, std::string>& of_all, bool is_any, std::string words) {
      if (is_any)
        of_all.insert_or_assign(rank, std::move(words));
      else
        of_all.erase(rank);
    };
    keep(troubles_, !what.trouble.empty(), ends_because_of(who, what.trouble));
    if (!troubles_.contains(first_in_trouble_)) first_in_trouble_ = rank;
    if (works_.contains(rank)) worked_until_[rank] = now;
    keep(works_, !what.work.empty(), detail::text_of({to_string(who), " ", what.work}));
    if (before != std::pair(first_trouble(), first_work())) ++notice_;
  }
  /// The last time at which the member was at work; `now` if it still is.
  time worked_until(int rank, time now) const {
    const auto found = worked_until_.find(rank);
    return works_.contains(rank) ? now : found == worked_until_.end() ? time{} : found->second;
  }
  /// The first announced work for which the others may have to wait; empty: none.
  std::string first_work() const { return works_.empty() ? "" : works_.begin()->second; }
  /// The error of the member that was first in trouble.
  std::string first_trouble() const {
    const auto found = troubles_.find(first_in_trouble_);
    return found != troubles_.end() ? found->second : troubles_.empty() ? "" : troubles_.begin()->second;
  }
  /// The number of the last notice.
  std::uint64_t notice() const { return notice_; }
  /// True if all present members have read the last notice.
  bool all_know_notice() const {
    return std::ranges::all_of(roster_.all(), [&](const auto& each) {
      const auto& [rank, e] = each;
      return e.is != presence::present || !e.is_connected || report_of(rank).knows_notice == notice_;
    });
  }
  /// Fails the generation if a member has been silent for too long. To be called several times in each interval.
  void look(time now) {
    // If the coordinator itself was suspended, all deadlines are extended by that time.
    if (looked_ && now - *looked_ > options_.interval)
      for (auto& [rank, e] : roster_.all()) e.heard += now - *looked_;
    looked_ = now;
    if (!is_complete()) {
      std::vector<int> gone;
      for (const auto& [rank, e] : roster_.all())
        if (!e.is_connected && now - e.heard > time_to_ask_again) gone.push_back(rank);
      for (const int rank : gone) remove(rank, true);
    }
    if (!is_complete() || !failure_.empty()) return;
    std::vector<member> dead;
    std::string when;
    for (const auto& [rank, e] : roster_.all())
      if (e.is != presence::left && is_silent(e, now)) {
        dead.push_back(e.who);
        when = e.is_connected ? detail::text_of({"no heartbeat for ", seconds(now - e.heard)}) : "its connection is lost";
      }
    if (!dead.empty())
      set_failure(detail::text_of({to_string(dead), dead.size() == 1 ? " is" : " are", " considered dead: ", when}), now,
                  diagnosis(now));
  }

  /// The member has left or is silent. A living member is notified when the generation fails, and answers at once.
  bool is_gone(int rank, time now) const {
    const roster::entry& e = *roster_.find(rank);
    const bool ignores_failure = !failure_.empty() && e.heard <= failed_ && now - failed_ >= options_.interval;
    return e.is == presence::left || !e.is_connected || ignores_failure || is_silent(e, now);
  }
  bool contains(int rank) const { return roster_.find(rank) != nullptr; }
  std::vector<member> all() const {
    std::vector<member> out;
    for (const auto& [rank, e] : roster_.all()) out.push_back(e.who);
    return out;
  }

  /// The text on which the members agree; of each member only the hash is stored.
  const agreement& agreed() const { return agreed_; }

  /// The reason why the run has failed; empty: it has not.
  const std::string& failure() const { return failure_; }
  /// The reason without the list of who waits for whom.
  const std::string& cause() const { return cause_; }
  /// The members that are missing, as long as the generation is incomplete.
  absent_members absent() const {
    absent_members out;
    for (int r = 0; r < size_; ++r) {
      if (contains(r)) continue;
      const auto found = absent_.find(r);
      if (found == absent_.end())
        out.missing.push_back(r);
      else
        (found->second.gave_up ? out.gave_up : out.lost).push_back(to_string(found->second.who));
    }
    return out;
  }

  /// What each process waits for. Processes that wait for no process come first, because they hold up the others:
  /// "; worker 1 (...) was not waiting for a process, as of 0.4 s ago; worker 0 (...) has waited 3.5 s for worker 1 (gradients),
  /// ...".
  std::string diagnosis(time now) const {
    constexpr std::size_t most_shown = 8;
    struct line {
      const roster::entry* of;
      report what;
    };
    std::vector<line> all;
    for (const auto& [rank, e] : roster_.all()) all.push_back({&e, report_of(rank)});
    std::ranges::stable_sort(all, {},
                             [](const line& l) { return std::pair(l.what.waits.on >= 0, -l.what.waits.waited.count()); });
    std::string out;
    for (std::size_t i = 0; i < std::min(all.size(), most_shown); ++i) {
      const auto& [of, what] = all[i];
      out += detail::text_of({"; ", to_string(of->who)});
      if (of->is == presence::left)
        out += " has left";
      else if (const auto* on = find_process(what.waits.on))
        out += detail::text_of({" has waited ", seconds(what.waits.waited + (now - what.reported)), " for ", on->who.name, " (",
                                what.waits.what, ")"});
      else
        out += " was not waiting for a process";
      if (what.reported != time{}) out += detail::text_of({", as of ", seconds(now - what.reported), " ago"});
    }
    return all.size() > most_shown ? detail::text_of({out, "; and ", all.size() - most_shown, " more"}) : out;
  }

  /// Once per window: the process for which the others have waited most of the time, if it differs from the last one. Spares
  /// always wait, and do not count.
  std::optional<std::string> slow_member(time now) {
    if (!is_complete() || now - window_began_ < window) return {};
    const double length = std::chrono::duration<double>(now - std::exchange(window_began_, now)).count();
    const member* least = nullptr;
    double smallest = 2, sum = 0;
    for (const auto& [rank, e] : roster_.all()) {
      report& r = reports_[rank];
      const double share =
          std::chrono::duration<double>(r.waits.altogether - std::exchange(r.before, r.waits.altogether)).count() / length;
      if (std::find(order_.end() - spares_, order_.end(), rank) != order_.end()) continue;
      sum += share;
      if (share < smallest) smallest = share, least = &e.who;
    }
    const int members = int(roster_.all().size()) - spares_;
    const double others = (sum - smallest) / std::max(1, members - 1);
    const bool is_slow = members > 1 && others > 0.25 && smallest < others / 4;
    const int before = std::exchange(slow_, is_slow ? least->rank : -1);
    if (!is_slow || before == slow_) return {};
    return to_string(*least) +
           detail::formatted(" is slow: in the last %.0f s it waited for others %.0f %% of the time, the others %.0f %%", length,
                             100 * smallest, 100 * others);
  }

 private:
  static constexpr std::chrono::seconds window{10};

  struct report {
    core::wait_state::report waits{};
    time reported{};
    std::chrono::milliseconds before{};  // waited in total when the window began
    std::uint64_t knows_notice = 0;
  };
  struct absence {
    member who;
    bool gave_up;  // or its connection was lost
  };
  static constexpr std::chrono::seconds time_to_ask_again{1};

  void admit(member m, time now) {
    m.agreement.text = {};
    roster_.admit(m, now);
  }
  /// Removes a member of an incomplete generation.
  void remove(int rank, bool gave_up) {
    if (const auto* e = roster_.find(rank)) absent_.insert_or_assign(rank, absence{e->who, gave_up});
    roster_.remove(rank);
  }
  /// Fails the generation if this member waits for the end of a shared call that another one will never begin. What it has sent
  /// before has had two intervals to arrive.
  void refuse_endless_call(const member& who, const core::wait_state::report& waits, time now) {
    const auto refuse = [&](const member& other, const std::string& does) {
      set_failure(detail::text_of({to_string(who), " has begun ", waits.calls,
                                   " calls on the devices of all processes and waits for ", waits.what_call, ", but ",
                                   to_string(other), ' ', does, ": all processes have to compute the same steps"}),
                  now);
    };
    const auto patience = options_.missed * options_.interval;
    for (const auto& [rank, e] : roster_.all()) {
      const core::wait_state::report other = report_of(rank).waits;
      const auto* on = find_process(other.on);
      if (rank == who.rank) continue;
      if (e.is == presence::left) {
        if (waits.call_waited >= patience && now - e.heard >= patience) refuse(e.who, "has left the training");
      } else if (on && on->who.rank == who.rank && other.calls < waits.calls && other.waited >= options_.interval) {
        refuse(e.who, detail::text_of({"has begun only ", other.calls, " and waits for ", other.what}));
      } else if (other.call == waits.call && other.what_call != waits.what_call && other.call_waited >= 2 * options_.interval) {
        refuse(e.who, detail::text_of({"for ", other.what_call}));
      }
    }
  }
  roster::entry& at(int rank) { return roster_.all().at(rank); }
  report report_of(int rank) const {
    const auto found = reports_.find(rank);
    return found == reports_.end() ? report{} : found->second;
  }
  bool is_silent(const roster::entry& e, time now) const { return now - e.heard >= options_.missed * options_.interval; }

  /// Communicators number the processes of a generation from 0 without gaps; in the first one, the numbers are the ranks.
  const roster::entry* find_process(int number) const {
    if (order_.empty()) return roster_.find(number);
    return number < 0 || number >= size_ ? nullptr : roster_.find(order_[std::size_t(number)]);
  }

  static std::string seconds(std::chrono::steady_clock::duration d) {
    return detail::formatted("%.1f s", std::chrono::duration<double>(d).count());
  }
  void set_failure(const std::string& why, time now, const std::string& who_waits = "") {
    if (!failure_.empty()) return;
    cause_ = troubles_.empty() ? why : first_trouble();
    failure_ = troubles_.empty() ? why + who_waits : cause_;
    failed_ = now;
  }

  heartbeat_options options_;
  roster roster_;
  agreement agreed_;
  std::vector<int> order_;  // ranks, by number; of a generation that follows another one
  std::map<int, report> reports_;
  std::map<int, absence> absent_;  // that had joined when the generation was incomplete
  std::map<int, std::string> troubles_, works_;
  std::map<int, time> worked_until_;
  int first_in_trouble_ = -1;
  std::uint64_t notice_ = 0;
  int size_ = 0, spares_ = 0, slow_ = -1;
  std::string failure_, cause_;
  time failed_{};
  std::optional<time> looked_;
  time window_began_{};
};

}  // namespace strata::control
