// The generations of an elastic training: which processes form the next one after members were lost or others joined late.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <strata/base/text.hpp>
#include <strata/distribute/control/control_messages.hpp>
#include <strata/distribute/control/membership.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata::control {

/// The members of the current generation, and those that have asked for the next one. The next generation begins when all living
/// members have asked, so that no process is in two; a living member that does not ask within `patience` is left out. Late
/// processes are taken in only when no member is lost, because only then all members are between the same two steps. It reads no
/// clock and uses no network; it is not thread-safe.
class generations {
 public:
  using time = membership::time;

  /// `least`: how many members a generation needs; 0: there is only one generation.
  generations(heartbeat_options options, std::uint64_t number, int least, std::chrono::milliseconds patience)
      : options_(options), who_{.generation = number}, least_(least), patience_(patience), now_(options) {}

  /// Its ranks are known once all have joined.
  formation current() const {
    formation f = who_;
    if (f.ranks.empty())
      for (const member& m : now_.all()) f.ranks.push_back(m.rank);
    return f;
  }
  std::uint64_t number() const { return who_.generation; }
  membership& now() { return now_; }
  const membership& now() const { return now_; }
  bool is_elastic() const { return least_ > 0; }
  /// Why the run has ended; empty while it goes on.
  std::string end() const {
    if (!end_.empty()) return end_;
    return is_elastic() && now_.is_complete() ? "" : now_.failure();
  }

  /// A member asks for the next generation.
  void come(int rank, time now) {
    if (coming_.empty()) began_ = now;
    coming_.insert(rank);
  }
  /// A member that had asked is lost.
  void withdraw(int rank) { coming_.erase(rank); }

  /// Why a process that comes after the first generation was complete cannot take part, or nothing.
  std::optional<std::string> refuses_late(const member& m) const {
    const member known = now_.all().front();
    if (m.size != known.size || m.rank <= 0 || m.rank >= m.size)
      return detail::text_of({to_string(m), " of ", m.size, " cannot join a training of ", known.size, " that is under way"});
    if (m.agreement != now_.agreed()) return disagreement(to_string(m), "the others do", now_.agreed(), m.agreement);
    return {};
  }
  /// Whether a late process may have its rank: no other process with that rank is alive.
  bool has_place_for(const member& m, time now) const {
    return !now_.contains(m.rank) || (now_.is_gone(m.rank, now) && !coming_.contains(m.rank));
  }

  /// Begins the next generation, which is the current one from then on, and returns a sentence about what has changed. Returns
  /// nothing while a living member has not asked, or if the run ends.
  std::optional<std::string> form(const std::vector<member>& late, time now) {
    if (coming_.empty() || !end_.empty()) return {};
    std::vector<member> members, missing, taken_in;
    for (const member& m : now_.all()) {
      if (coming_.contains(m.rank)) {
        members.push_back(m);
        continue;
      }
      if (!now_.is_gone(m.rank, now) && now - std::max(began_, now_.worked_until(m.rank, now)) < patience_) return {};
      missing.push_back(m);
    }
    const std::string lost = missing.empty() ? "" : detail::text_of({"lost ", to_string(missing)});
    const std::string why = now_.failure().empty() ? "" : detail::text_of({" (", now_.failure(), ")"});
    if (members.front().rank != 0)
      return end_with(detail::text_of({lost, ": the training does not go on without the chief", why}));
    if (int(members.size()) < least_)
      return end_with(detail::text_of({lost, ": the training needs ", least_, " workers, and has ", members.size(), why}));
    const bool none_is_lost = lost.empty() && why.empty();
    for (const member& m : late)
      if (none_is_lost && std::ranges::find(members, m.rank, &member::rank) == members.end()) {
        members.push_back(m);
        taken_in.push_back(m);
      }
    const std::string come = taken_in.empty() ? "" : detail::text_of({"taken in ", to_string(taken_in)});
    std::ranges::sort(members, {}, &member::rank);
    who_ = {.generation = who_.generation + 1};
    for (const member& m : members) {
      if (!now_.contains(m.rank)) who_.newcomers.push_back(int(who_.ranks.size()));
      who_.ranks.push_back(m.rank);
    }
    now_ = membership(options_, members, now_.agreed(), now);
    coming_.clear();
    return detail::text_of({"generation ", who_.generation, " of the cluster: ", lost, come,
                            lost.empty() && come.empty() ? "" : "; ", members.size(),
                            members.size() == 1 ? " worker goes on" : " workers go on"});
  }

 private:
  std::nullopt_t end_with(std::string why) {
    end_ = std::move(why);
    return std::nullopt;
  }

  heartbeat_options options_;
  formation who_;
  int least_;
  std::chrono::milliseconds patience_;
  membership now_;
  std::set<int> coming_;  // ranks that have asked
  time began_{};          // when the first member asked
  std::string end_;
};

}  // namespace strata::control
