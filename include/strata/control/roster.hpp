// The processes of a training by rank: who has joined, is connected, has left, or is lost.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <strata/base/text.hpp>
#include <strata/control/member.hpp>
#include <string>
#include <vector>

namespace strata::control {

enum class presence : std::uint8_t {
  present,
  left,  // in good order
  lost,  // until its next message
};

/// "worker 1 (rank 1, node7, pid 4711) ends because of an error: cannot read ..."
inline std::string ends_because_of(const member& m, const std::string& trouble) {
  return detail::text_of({to_string(m), " ends because of an error: ", trouble});
}

/// The common part of the coordinator of a synchronous training and of a parameter server: at most one process per rank,
/// distinguished from an earlier one by its incarnation. The consequences of a process that leaves or is lost are decided by the
/// owners, membership and parameter_store. This class reads no clock and uses no network; it is not thread-safe.
class roster {
 public:
  using time = std::chrono::steady_clock::time_point;

  struct entry {
    member who{};
    presence is = presence::present;
    time heard{};                         // its last message, or when it left or was lost
    long connections = 0;                 // so far; the last one counts
    bool is_connected = false;            // by that one
    std::vector<std::uint64_t> former{};  // incarnations that had this rank before
    std::string trouble{};                // an error with which its program may end
  };
  using entries = std::map<int, entry>;

  /// Puts the process at its rank, in place of a former one. Returns nullptr for a former one: it has been replaced.
  entry* admit(const member& m, time now) {
    entry& e = entries_[m.rank];
    if (e.who.incarnation != m.incarnation) {
      if (std::ranges::find(e.former, m.incarnation) != e.former.end()) return nullptr;
      if (e.connections > 0) e.former.push_back(e.who.incarnation);
      if (e.former.size() > most_former) e.former.erase(e.former.begin());
      e.trouble.clear();
    }
    e.who = m;
    e.is = presence::present, e.is_connected = true, e.heard = now;
    ++e.connections;
    return &e;
  }
  /// Removes the process as if it had never joined.
  void remove(int rank) { entries_.erase(rank); }

  entry* find(int rank) { return find_in<entry>(entries_, rank); }
  const entry* find(int rank) const { return find_in<const entry>(entries_, rank); }
  /// The entry of this process; nullptr if it has not joined or has been replaced.
  entry* find(int rank, std::uint64_t incarnation) { return if_of(incarnation, find(rank)); }
  const entry* find(int rank, std::uint64_t incarnation) const { return if_of(incarnation, find(rank)); }
  bool is_present(int rank) const {
    const entry* const e = find(rank);
    return e && e->is == presence::present;
  }

  /// The entries in the order of their ranks.
  const entries& all() const { return entries_; }
  entries& all() { return entries_; }

  /// A message of the process; one that seemed lost is present again.
  static void hear(entry& e, time now) { e.is = presence::present, e.heard = now; }
  static void leave(entry& e, time now) { e.is = presence::left, e.is_connected = false, e.heard = now; }

 private:
  static constexpr std::size_t most_former = 1000;

  /// Entry: entry or const entry, as `all` is.
  template <class Entry, class Entries>
  static Entry* find_in(Entries& all, int rank) {
    const auto found = all.find(rank);
    return found == all.end() ? nullptr : &found->second;
  }
  template <class Entry>
  static Entry* if_of(std::uint64_t incarnation, Entry* e) {
    return e && e->who.incarnation == incarnation ? e : nullptr;
  }

  entries entries_;
};

}  // namespace strata::control
