// Who takes part in a run, as the coordinator knows it: who has joined, is alive, waits for whom, and why the run has failed.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <strata/base/text.hpp>
#include <strata/distribute/communicators/wait_state.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata {

/// A process that wants to take part.
struct member {
  int rank = 0, size = 1;
  std::string name{}, host{};      // "worker 1", and where it runs
  int pid = 0;
  std::uint64_t incarnation = 0;   // tells a process from another one that took its place
  std::string agreement{};         // what all have to say alike
};

/// "worker 1 (rank 1, node7, pid 4711)"
inline std::string to_string(const member& m) {
  return m.name + " (rank " + std::to_string(m.rank) + ", " + m.host + ", pid " + std::to_string(m.pid) + ")";
}

struct heartbeat_options {
  std::chrono::milliseconds interval = std::chrono::seconds(2);
  int missed = 3;  // that many in a row, and the process is taken for dead
};

/// One generation of a run. It passes through three states: not complete, complete, failed; a failed one never recovers, so that
/// processes that were taken for dead cannot come back into it. Knows no clock and no network; not for several threads at once.
class membership {
 public:
  using time = std::chrono::steady_clock::time_point;
  static constexpr int most_members = 1 << 14;

  explicit membership(heartbeat_options options = {}) : options_(options) {}
  /// A generation that follows another one is complete from the beginning. Its members keep their ranks, so that some may be missing.
  membership(heartbeat_options options, const std::vector<member>& all, time now)
      : options_(options), size_(int(all.size())), window_began_(now) {
    for (const member& m : all) members_[m.rank] = {.who = m, .heard = now};
  }

  /// Why the process may not take part, or nothing. Two that disagree fail the run, as long as it is not complete; after that, a
  /// stranger is refused and changes nothing.
  std::optional<std::string> join(const member& m, time now) {
    if (m.size < 1 || m.size > most_members || m.rank < 0 || m.rank >= m.size)
      return "rank " + std::to_string(m.rank) + " of " + std::to_string(m.size) + " is none";
    const auto found = members_.find(m.rank);
    if (found != members_.end() && found->second.who.incarnation == m.incarnation) return {};  // asks again
    const bool was_complete = is_complete();
    std::string problem;
    if (found != members_.end())
      problem = "two processes say that they are rank " + std::to_string(m.rank) + ": " + to_string(found->second.who) + " and " + to_string(m);
    else if (!members_.empty() && members_.begin()->second.who.agreement != m.agreement)
      problem = to_string(m) + " does not train what " + to_string(members_.begin()->second.who) + " does: '" + m.agreement + "' there, '" +
                members_.begin()->second.who.agreement + "' here";
    if (!problem.empty()) {
      if (!was_complete) set_failure(problem, now);
      return was_complete ? problem + "; a process that starts anew needs a new generation of the cluster" : problem;
    }
    size_ = m.size;
    members_[m.rank] = {.who = m, .heard = now};
    if (is_complete()) {
      for (auto& [rank, s] : members_) s.heard = now;
      window_began_ = now;
    }
    return {};
  }
  bool is_complete() const { return size_ > 0 && int(members_.size()) == size_; }

  /// Why a message of that process is not to be listened to, or nothing.
  std::optional<std::string> refuses(int rank, std::uint64_t incarnation) const {
    const auto found = members_.find(rank);
    if (found == members_.end() || found->second.who.incarnation != incarnation)
      return "this process, with rank " + std::to_string(rank) + ", does not belong to this generation of the cluster";
    return {};
  }

  void beat(int rank, const wait_state::report& waits, time now) {
    standing& s = members_.at(rank);
    s.heard = s.reported = now;
    s.is_cut_off = false;
    s.waits = waits;
    const auto on = find_process(waits.on);
    if (on != members_.end() && on->second.has_left && waits.waited >= options_.interval && now - on->second.heard >= options_.interval)
      fail(rank, waits.on, waits.what + ": " + to_string(on->second.who) + " has left the training", now);
  }
  /// It ends in good order.
  void leave(int rank, time now) {
    if (!is_complete()) {
      members_.erase(rank);
      return;
    }
    members_.at(rank).has_left = true;
    members_.at(rank).heard = now;
  }
  /// It may have died, or come back at once.
  void lose_connection(int rank, time now) {
    if (!is_complete()) {
      members_.erase(rank);
      return;
    }
    standing& s = members_.at(rank);
    s.heard = std::min(s.heard, now - (options_.missed - 1) * options_.interval);
    s.is_cut_off = true;
  }
  /// What a process found out by itself. `on` is the one that it blames, or -1.
  void fail(int rank, int on, const std::string& why, time now) {
    if (!failure_.empty()) return;
    std::string text = why;
    if (const auto blamed = find_process(on); blamed != members_.end() && why.find(to_string(blamed->second.who)) == why.npos)
      text += "; process " + std::to_string(on) + " is " + to_string(blamed->second.who);
    if (const auto found = members_.find(rank); found != members_.end()) text += ", says " + found->second.who.name;
    set_failure(text + diagnosis(now), now);
  }
  /// Looks who has not been heard of. To be called several times in each interval.
  void look(time now) {
    // If the coordinator itself stood still, nobody else is to blame.
    if (looked_ && now - *looked_ > options_.interval)
      for (auto& [rank, s] : members_) s.heard += now - *looked_;
    looked_ = now;
    if (!is_complete() || !failure_.empty()) return;
    std::string dead, when;
    for (auto& [rank, s] : members_)
      if (!s.has_left && now - s.heard >= options_.missed * options_.interval) {
        dead += (dead.empty() ? "" : ", ") + to_string(s.who);
        when = s.is_cut_off ? "its connection is lost" : "no heartbeat for " + seconds(now - s.heard);
      }
    if (!dead.empty()) set_failure(dead + " is taken for dead: " + when + diagnosis(now), now);
  }

  /// It has left, or is no longer heard of. Whoever is alive when the generation fails is told, and says something at once.
  bool is_gone(int rank, time now) const {
    const standing& s = members_.at(rank);
    const bool keeps_silent = !failure_.empty() && s.heard <= failed_ && now - failed_ >= options_.interval;
    return s.has_left || s.is_cut_off || keeps_silent || now - s.heard >= options_.missed * options_.interval;
  }
  bool contains(int rank) const { return members_.contains(rank); }
  std::vector<member> all() const {
    std::vector<member> out;
    for (const auto& [rank, s] : members_) out.push_back(s.who);
    return out;
  }

  /// Empty, or why the run has failed.
  const std::string& failure() const { return failure_; }
  /// The ranks that have not joined: "1 3".
  std::string missing() const {
    std::string out;
    for (int r = 0; r < size_; ++r)
      if (!members_.contains(r)) out += (out.empty() ? "" : " ") + std::to_string(r);
    return out;
  }

  /// What each process waits for, those that wait for nobody first: "; worker 1 (...) waits for nobody, heard of 0.4 s ago; ...".
  std::string diagnosis(time now) const {
    std::vector<const standing*> all;
    for (const auto& [rank, s] : members_) all.push_back(&s);
    std::ranges::stable_sort(all, {}, [](const standing* s) { return std::pair(s->waits.on >= 0, -s->waits.waited.count()); });
    std::string out;
    for (std::size_t i = 0; i < std::min<std::size_t>(all.size(), 8); ++i) {
      const standing& s = *all[i];
      out += "; " + to_string(s.who);
      if (s.has_left)
        out += " has left";
      else if (const auto on = find_process(s.waits.on); on != members_.end())
        out += " has waited " + seconds(s.waits.waited + (now - s.reported)) + " for " + on->second.who.name + " (" + s.waits.what + ")";
      else
        out += " waited for nobody";
      if (s.reported != time{}) out += ", as of " + seconds(now - s.reported) + " ago";
    }
    return all.size() > 8 ? out + "; and " + std::to_string(all.size() - 8) + " more" : out;
  }

  /// Once in a while: the process that the others have waited for most of the time, when that is another one than before.
  std::optional<std::string> slow_member(time now) {
    if (!is_complete() || now - window_began_ < window) return {};
    const double length = std::chrono::duration<double>(now - std::exchange(window_began_, now)).count();
    const standing* least = nullptr;
    double smallest = 2, sum = 0;
    for (auto& [rank, s] : members_) {
      const double share = std::chrono::duration<double>(s.waits.altogether - std::exchange(s.before, s.waits.altogether)).count() / length;
      sum += share;
      if (share < smallest) smallest = share, least = &s;
    }
    const double others = (sum - smallest) / std::max(1, int(members_.size()) - 1);
    const bool is_slow = members_.size() > 1 && others > 0.25 && smallest < others / 4;
    const int before = std::exchange(slow_, is_slow ? least->who.rank : -1);
    if (!is_slow || before == slow_) return {};
    return to_string(least->who) + detail::formatted(" is slow: in the last %.0f s it waited for others %.0f %% of the time, the others %.0f %%",
                                                     length, 100 * smallest, 100 * others);
  }

 private:
  static constexpr std::chrono::seconds window{10};

  struct standing {
    member who{};
    time heard{}, reported{};
    wait_state::report waits{};
    std::chrono::milliseconds before{};  // waited altogether when the window began
    bool has_left = false, is_cut_off = false;
  };

  /// Processes count themselves from 0 without gaps, in the order of their ranks.
  std::map<int, standing>::const_iterator find_process(int number) const {
    if (!is_complete()) return members_.find(number);
    return number < 0 || number >= size_ ? members_.end() : std::next(members_.begin(), number);
  }

  static std::string seconds(std::chrono::steady_clock::duration d) {
    return detail::formatted("%.1f s", std::chrono::duration<double>(d).count());
  }
  void set_failure(const std::string& why, time now) {
    if (failure_.empty()) failure_ = why, failed_ = now;
  }

  heartbeat_options options_;
  std::map<int, standing> members_;
  int size_ = 0, slow_ = -1;
  std::string failure_;
  time failed_{};  // when
  std::optional<time> looked_;
  time window_began_{};
};

}  // namespace strata
