// The processes of one training, and the operations between them besides adding gradients.
#pragma once
#include <concepts>
#include <cstddef>
#include <span>
#include <strata/base/reason.hpp>
#include <string>
#include <type_traits>
#include <vector>

namespace strata {

namespace reasons {
inline constexpr reason process_groups_have_rank_size_and_is_chief;
inline constexpr reason process_groups_have_gather_which_returns_the_values_of_all;
inline constexpr reason process_groups_have_broadcast_of_bytes;
inline constexpr reason process_groups_have_vote_and_vote_result;
inline constexpr reason process_groups_have_a_barrier;
inline constexpr reason process_groups_have_announce_error_and_announce_work;
inline constexpr reason groups_whose_members_never_change_derive_from_fixed_membership;
}  // namespace reasons

namespace detail {
template <class G>
auto requirements_of_process_group() {
  if constexpr (!requires(const G& k) {
                  { k.rank() } -> std::same_as<int>;
                  { k.size() } -> std::same_as<int>;
                  { k.is_chief() } -> std::same_as<bool>;
                })
    return lacks<G, reasons::process_groups_have_rank_size_and_is_chief>{};
  else if constexpr (!requires(G g, std::span<const double> values) {
                       { g.gather(values) } -> std::same_as<std::vector<double>>;
                     })
    return lacks<G, reasons::process_groups_have_gather_which_returns_the_values_of_all>{};
  else if constexpr (!requires(G g, std::span<std::byte> bytes) { g.broadcast(bytes); })
    return lacks<G, reasons::process_groups_have_broadcast_of_bytes>{};
  else if constexpr (!requires(G g, const G& k) {
                       g.vote(true);
                       { k.vote_result() } -> std::same_as<bool>;
                     })
    return lacks<G, reasons::process_groups_have_vote_and_vote_result>{};
  else if constexpr (!requires(G g) { g.barrier(); })
    return lacks<G, reasons::process_groups_have_a_barrier>{};
  else if constexpr (!requires(G g, const G& k, const std::string& what) {
                       g.announce_error(what);
                       k.announce_work(what);
                     })
    return lacks<G, reasons::process_groups_have_announce_error_and_announce_work>{};
  else
    return no_complaint{};
}
}  // namespace detail

namespace core {
/// The processes that train together. Unless noted otherwise, operations are collective: all call them, in the same order.
///   `rank()`, `size()`   this process is `rank()` of 0 ... `size()` - 1
///   `is_chief()`         whether this process writes files and prints progress: true in exactly one process of a training
///   `gather(values)`     returns the values of all processes, in the order of their ranks. All pass equally many
///   `broadcast(bytes)`   overwrites `bytes` with those of rank 0
///   `vote(yes)`          the vote of this process from the next step on; it travels with the gradients
///   `vote_result()`      whether a process voted yes in the last step: the same answer in all processes. Local
///   `barrier()`          returns after all processes have called it
///   `announce_error(what)`  notifies the others of an error that may end this program; empty: it continues. Local
///   `announce_work(what)`   notifies the others of work for which they may have to wait, however long it takes; empty: it is
///                           done. Local
/// All but the last two throw communication_error when a process is lost.
template <class G>
concept process_group = std::same_as<decltype(detail::requirements_of_process_group<G>()), detail::no_complaint>;

/// Announces work, and its end in the destructor.
template <class Group>
class announced_work {
  const Group& group_;

 public:
  announced_work(const Group& group, const std::string& what) : group_(group) { group_.announce_work(what); }
  ~announced_work() { group_.announce_work(""); }
  announced_work(const announced_work&) = delete;
  announced_work& operator=(const announced_work&) = delete;
};

/// A process group whose members may change between two steps. A group that never changes derives from fixed_membership.
///   `is_late()`                       this process started during the training, and has not caught up yet
///   `join()`                          of a late process: returns when the others have admitted it
///   `has_caught_up()`                 of a late process: declares that it has received the whole state of the training
///   `admit()`                         admits the processes that wait to join, if there are any. Returns whether one was admitted
///   `broadcast_to_newcomers(bytes)`   the processes just admitted get the bytes of the chief; the others return at once
///   `finished_fits()`                 the number of completed calls of fit
///   `leave()`                         the end of a fit: returns when no process needs anything more from this one
template <class G>
concept elastic_group = process_group<G> && requires(G g, const G& k, std::span<std::byte> bytes) {
  { k.is_late() } -> std::same_as<bool>;
  g.join();
  g.has_caught_up();
  { g.admit() } -> std::same_as<bool>;
  g.broadcast_to_newcomers(bytes);
  { k.finished_fits() } -> std::same_as<int>;
  g.leave();
};
}  // namespace core

namespace detail {
template <class G>
auto requirements_of_elastic_group() {
  if constexpr (process_group<G> && !elastic_group<G>)
    return lacks<G, reasons::groups_whose_members_never_change_derive_from_fixed_membership>{};
  else
    return requirements_of_process_group<G>();
}
/// no_complaint, or the first requirement that an elastic_group does not meet.
template <class G>
using process_group_verdict = decltype(requirements_of_elastic_group<G>());
}  // namespace detail

namespace core {
/// The membership of a group that never changes.
struct fixed_membership {
  static constexpr bool is_late() { return false; }
  static void join() {}
  static void has_caught_up() {}
  static constexpr bool admit() { return false; }
  static void broadcast_to_newcomers(std::span<std::byte>) {}
  static constexpr int finished_fits() { return 0; }
  static void leave() {}
};

/// The group of a single process: gather returns its own values. It is also the group of each worker of an asynchronous training,
/// in which workers need no agreement; there `chief` is set in one of them.
class solo_group : public fixed_membership {
 public:
  constexpr explicit solo_group(bool chief = true) : chief_(chief) {}

  static constexpr int rank() { return 0; }
  static constexpr int size() { return 1; }
  constexpr bool is_chief() const { return chief_; }
  static std::vector<double> gather(std::span<const double> values) { return {values.begin(), values.end()}; }
  static void broadcast(std::span<std::byte>) {}
  constexpr void vote(bool yes) { vote_ = yes; }
  constexpr bool vote_result() const { return vote_; }
  static void barrier() {}
  static void announce_error(const std::string&) {}
  static void announce_work(const std::string&) {}

 private:
  bool chief_, vote_ = false;
};
static_assert(elastic_group<solo_group>);
}  // namespace core

}  // namespace strata
