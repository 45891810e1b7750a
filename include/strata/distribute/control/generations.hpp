// The generations of a run, one after the other: who is in the next one, when members are lost or somebody comes late.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <set>
#include <sstream>
#include <strata/distribute/control/membership.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata {

/// What a process is told of the generation that it is in.
struct formation {
  std::uint64_t generation = 0;
  std::vector<int> ranks{};      // in the first generation; a process's rank in this one is its place here
  std::vector<int> newcomers{};  // places of those that were not in the generation before

  friend bool operator==(const formation&, const formation&) = default;
};

/// "3: 0 1 +2": generation 3 of the processes 0, 1 and, newly come, 2.
inline std::string to_string(const formation& f) {
  std::string text = std::to_string(f.generation) + ':';
  for (std::size_t i = 0; i < f.ranks.size(); ++i)
    text += (std::ranges::find(f.newcomers, int(i)) != f.newcomers.end() ? " +" : " ") + std::to_string(f.ranks[i]);
  return text;
}
inline std::optional<formation> read_formation(const std::string& text) {
  std::istringstream words(text);
  formation f;
  char colon = 0;
  if (!(words >> f.generation >> colon) || colon != ':') return {};
  for (std::string word; words >> word;) {
    if (word[0] == '+') f.newcomers.push_back(int(f.ranks.size()));
    f.ranks.push_back(std::atoi(word.c_str()));
  }
  return f;
}

/// The members of one generation, and those that have come to be in the next one. That begins when all have come that are
/// alive, so that no process is in two; whoever is alive but does not come for too long is left out. Late ones get in when
/// nobody is lost, since only then all others are between the same steps. Knows no clock and no network; not for several
/// threads at once.
class generations {
 public:
  using time = membership::time;

  /// `least`: members that a generation needs; 0: there is only one generation.
  generations(heartbeat_options options, std::uint64_t number, int least, std::chrono::milliseconds patience)
      : options_(options), who_{.generation = number}, least_(least), patience_(patience), now_(options) {}

  /// The ranks are known once all are there.
  formation current() const {
    formation f = who_;
    if (f.ranks.empty())
      for (const member& m : now_.all()) f.ranks.push_back(m.rank);
    return f;
  }
  membership& now() { return now_; }
  const membership& now() const { return now_; }
  bool is_elastic() const { return least_ > 0; }
  /// Why the run has failed and does not go on, or nothing.
  std::string end() const {
    if (!end_.empty()) return end_;
    return is_elastic() && now_.is_complete() ? "" : now_.failure();
  }

  /// A member of this generation wants to be in the next one.
  void come(int rank, time now) {
    if (coming_.empty()) began_ = now;
    coming_.insert(rank);
  }
  /// It is gone after all.
  void withdraw(int rank) { coming_.erase(rank); }

  /// Why a process that comes when all were there cannot take part at all, or nothing.
  std::optional<std::string> refuses_late(const member& m) const {
    const member known = now_.all().front();
    if (m.size != known.size || m.rank <= 0 || m.rank >= m.size)
      return to_string(m) + " of " + std::to_string(m.size) + " cannot join a training of " + std::to_string(known.size) +
             " that is under way";
    if (m.agreement != known.agreement)
      return to_string(m) + " does not train what the others do: '" + known.agreement + "' there, '" + m.agreement + "' here";
    return {};
  }
  /// Whether there is a place for a late one: nobody else with that rank is alive.
  bool has_place_for(const member& m, time now) const {
    return !now_.contains(m.rank) || (now_.is_gone(m.rank, now) && !coming_.contains(m.rank));
  }

  /// Begins the next generation, which is the current one from then on, and says in words what has changed. Nothing as long as
  /// somebody is awaited, or if the run ends.
  std::optional<std::string> form(const std::vector<member>& late, time now) {
    if (coming_.empty() || !end_.empty()) return {};
    std::vector<member> members;
    std::string lost, come;
    for (const member& m : now_.all()) {
      if (coming_.contains(m.rank)) {
        members.push_back(m);
        continue;
      }
      if (!now_.is_gone(m.rank, now) && now - began_ < patience_) return {};
      lost += (lost.empty() ? "lost " : ", ") + to_string(m);
    }
    const std::string why = now_.failure().empty() ? "" : " (" + now_.failure() + ")";
    if (members.front().rank != 0) return end_with(lost + ": the training does not go on without the chief" + why);
    if (int(members.size()) < least_)
      return end_with(lost + ": the training needs " + std::to_string(least_) + " workers, and has " +
                      std::to_string(members.size()) + why);
    const bool nobody_is_lost = lost.empty() && why.empty();
    for (const member& m : late)
      if (nobody_is_lost && std::ranges::find(members, m.rank, &member::rank) == members.end()) {
        members.push_back(m);
        come += (come.empty() ? "taken in " : ", ") + to_string(m);
      }
    std::ranges::sort(members, {}, &member::rank);
    who_ = {.generation = who_.generation + 1};
    for (const member& m : members) {
      if (!now_.contains(m.rank)) who_.newcomers.push_back(int(who_.ranks.size()));
      who_.ranks.push_back(m.rank);
    }
    now_ = membership(options_, members, now);
    coming_.clear();
    return "generation " + std::to_string(who_.generation) + " of the cluster: " + lost + come +
           (lost.empty() && come.empty() ? "" : "; ") + std::to_string(members.size()) +
           (members.size() == 1 ? " worker goes on" : " workers go on");
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
  std::set<int> coming_;
  time began_{};  // since when the next one is awaited
  std::string end_;
};

}  // namespace strata
