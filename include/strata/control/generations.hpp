// The generations of an elastic training: which processes form the next one after members were lost or others joined late.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <strata/base/text.hpp>
#include <strata/control/control_messages.hpp>
#include <strata/control/membership.hpp>
#include <string>
#include <utility>
#include <vector>

namespace strata::control {

/// The members of the current generation, and those that have requested the next one. The next generation begins when all living
/// members have requested it, so that no process is in two; a living member that does not within `patience` is left out. Late
/// processes are admitted only if no member is lost, because only then all members are between the same two steps. In a mesh,
/// `places` processes form a group, which has one copy of the network: the process of rank r has place r % places, also in a
/// later generation. So any processes, one for each place, can form a group. A member for which no group is left is a spare. It
/// computes again when it forms a group with others, spares or late processes; late processes wait until then. This class reads
/// no clock and uses no network; it is not thread-safe.
class generations {
 public:
  using time = membership::time;

  /// `least`: how many members a generation needs; 0: there is only one generation.
  generations(heartbeat_options options, std::uint64_t number, int least, std::chrono::milliseconds patience, int places = 1)
      : options_(options), who_{.generation = number}, least_(least), places_(places), patience_(patience), now_(options) {}

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
  /// The reason why the run has ended; empty while it continues.
  std::string end() const {
    if (!end_.empty()) return end_;
    return is_elastic() && now_.is_complete() ? "" : now_.failure();
  }

  /// A member requests the next generation. is_spare: it lacks the newest state of the training.
  void come(int rank, time now, bool is_spare = false) {
    if (coming_.empty()) began_ = now;
    coming_.insert_or_assign(rank, is_spare);
  }
  /// A member that had requested it is lost.
  void withdraw(int rank) { coming_.erase(rank); }

  /// The reason why a process that comes after the first generation was complete cannot take part; empty if it can.
  std::optional<std::string> refuses_late(const member& m) const {
    const member known = now_.all().front();
    if (m.size != known.size || m.rank <= 0 || m.rank >= m.size)
      return detail::text_of({to_string(m), " of ", m.size, " cannot join a running training of ", known.size});
    if (m.agreement != now_.agreed()) return disagreement(to_string(m), "the others do", m.agreement, now_.agreed());
    return {};
  }
  /// True if a late process may have its rank: no other process with that rank is alive.
  bool has_place_for(const member& m, time now) const {
    return !now_.contains(m.rank) || (now_.is_gone(m.rank, now) && !coming_.contains(m.rank));
  }

  /// True if late processes, perhaps with spares, could be admitted.
  bool can_grow(const std::vector<member>& late) const {
    const formation f = current();
    std::set<int> more;
    for (const member& m : late) more.insert(m.rank);
    for (std::size_t i = std::size_t(f.computing); f.computing > 0 && i < f.ranks.size(); ++i) more.insert(f.ranks[i]);
    std::set<int> places;
    for (const int rank : more) places.insert(rank % places_);
    return int(places.size()) == places_;
  }

  /// Begins the next generation, which becomes the current one, and returns a message about the changes. Returns nothing while a
  /// living member has not requested it, or if the run ends.
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
    const std::string why = now_.failure().empty() ? "" : detail::text_of({" (", now_.cause(), ")"});
    if (members.front().rank != 0)
      return end_with(detail::text_of({lost, ": the training does not go on without the chief", why}));
    if (int(members.size()) < least_)
      return end_with(detail::text_of({lost, ": the training needs ", least_, " workers, and has ", members.size(), why}));
    const bool none_is_lost = lost.empty() && why.empty();
    const auto is_member = [&](int rank) { return std::ranges::find(members, rank, &member::rank) != members.end(); };
    const groups next = formed(members, late, none_is_lost);
    if (next.place_without_process >= 0)
      return end_with(detail::text_of({lost, ": the training does not go on without a process that has part ",
                                       next.place_without_process + 1, " of ", places_, " of the network", why}));
    who_ = {.generation = who_.generation + 1};
    std::vector<member> all;
    for (const auto* each : {&next.computing, &next.spare})
      for (const member& m : *each) {
        if (!is_member(m.rank)) {
          taken_in.push_back(m);
          who_.newcomers.push_back(int(all.size()));
        } else if (each == &next.computing && coming_.at(m.rank)) {
          who_.lacking.push_back(int(all.size()));
        }
        all.push_back(m);
        who_.ranks.push_back(m.rank);
      }
    if (!next.spare.empty()) who_.computing = int(next.computing.size());
    const std::string come = taken_in.empty() ? "" : detail::text_of({"admitted ", to_string(taken_in)});
    now_ = membership(options_, all, now_.agreed(), now, int(next.spare.size()));
    coming_.clear();
    const std::string spares =
        next.spare.empty()
            ? ""
            : detail::text_of({", ", next.spare.size(), next.spare.size() == 1 ? " of them as a spare" : " of them as spares"});
    return detail::text_of({"generation ", who_.generation, " of the cluster: ", lost, come,
                            lost.empty() && come.empty() ? "" : "; ", all.size(),
                            all.size() == 1 ? " worker goes on" : " workers go on", spares});
  }

 private:
  std::nullopt_t end_with(std::string why) {
    end_ = std::move(why);
    return std::nullopt;
  }

  struct groups {
    std::vector<member> computing{}, spare{};  // the first `places` of those that compute are a group, and so on
    int place_without_process = -1;            // of a group; -1: each has one
  };
  /// As many groups as possible: of members with the newest state, and, if the generation grows, of spares and of late processes.
  groups formed(const std::vector<member>& members, const std::vector<member>& late, bool grows) const {
    struct at_place {
      std::vector<member> with_state{}, without{};
      std::size_t spares = 0;  // the first ones without state; the others are late
    };
    std::vector<at_place> all{std::size_t(places_)};
    for (const member& m : members) {
      at_place& here = all[std::size_t(m.rank % places_)];
      (coming_.at(m.rank) ? here.without : here.with_state).push_back(m);
    }
    const auto has = [](const std::vector<member>& some, int rank) {
      return std::ranges::find(some, rank, &member::rank) != some.end();
    };
    for (at_place& here : all) here.spares = here.without.size();
    for (const member& m : grows ? late : std::vector<member>{}) {
      at_place& here = all[std::size_t(m.rank % places_)];
      if (!has(here.with_state, m.rank) && !has(here.without, m.rank)) here.without.push_back(m);
    }
    groups out;
    std::size_t count = members.size() + late.size();
    for (int p = 0; p < places_; ++p) {
      const at_place& here = all[std::size_t(p)];
      count = std::min(count, here.with_state.size() + (grows ? here.without.size() : 0));
      if (here.with_state.empty()) out.place_without_process = p;
    }
    if (out.place_without_process >= 0) return out;
    for (at_place& here : all) {
      std::vector<member>& computing = here.with_state;
      for (std::size_t i = 0; i < here.without.size(); ++i) {
        if (computing.size() < count)
          computing.push_back(here.without[i]);
        else if (i < here.spares)
          out.spare.push_back(here.without[i]);
      }
      out.spare.insert(out.spare.end(), computing.begin() + long(std::min(count, computing.size())), computing.end());
      computing.resize(std::min(count, computing.size()));
      std::ranges::sort(computing, {}, &member::rank);
    }
    for (std::size_t group = 0; group < count; ++group)
      for (const at_place& here : all) out.computing.push_back(here.with_state[group]);
    std::ranges::sort(out.spare, {}, &member::rank);
    return out;
  }

  heartbeat_options options_;
  formation who_;
  int least_, places_;
  std::chrono::milliseconds patience_;
  membership now_;
  std::map<int, bool> coming_;  // ranks that have asked, and whether they lack the newest state
  time began_{};                // when the first member asked
  std::string end_;
};

}  // namespace strata::control
