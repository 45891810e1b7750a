// Elasticity: a synchronous training that outlives the loss of workers, and takes in those that come late.
#pragma once
#include <concepts>
#include <cstddef>
#include <functional>
#include <iostream>
#include <span>
#include <strata/concepts/communicator.hpp>
#include <string>
#include <vector>

namespace strata {

/// Whether a training goes on when workers are lost.
struct elastic_options {
  int least_workers = 0;  // with fewer, the chief among them, it ends; 0: it ends when the first is lost
  /// Told in the chief, on a thread of its own, who is gone, who has come, and how many go on.
  std::function<void(const std::string&)> on_change = [](const std::string& what) { std::clog << what + '\n'; };
};

/// What a process has to know to go on where the others are. Operations are those in which all processes take part.
struct elastic_progress {
  static constexpr int most_attempts = 16;

  bool is_late = false;             // does not know yet what the others know
  int attempts = 0;                 // to go on, since an operation was completed
  double completed = 0;             // operations
  std::vector<std::byte> result{};  // of the last one
  std::vector<double> unread{};     // messages that only say that a process has begun an operation
  int fits = 0;                     // that have ended
  int leaves[2] = {};               // that memory for messages is prepared for, by purpose

  void complete(std::span<const std::byte> with) {
    result.assign(with.begin(), with.end());
    ++completed;
    attempts = 0;
  }
};

/// A communicator whose processes can be connected anew, as the next generation: without those that are lost, and with those that
/// come late. Rank 0 stays the same process. Memory that was allocated before must not be used any more.
template <class C>
concept elastic_communicator = communicator<C> && requires(C c, const C& k, const std::string& why) {
  { k.is_elastic() } -> std::same_as<bool>;  // what follows is only for those that are
  { k.first_size() } -> std::same_as<int>;   // of the first generation
  c.form_again(why);  // all that are left call it, after an error or for a late one; throws if there is no next generation
  { k.newcomers() } -> std::convertible_to<const std::vector<int>&>;  // ranks of those that were not in the generation before
  { k.late_one_waits() } -> std::same_as<bool>;                       // at the chief: somebody wants to be in the next one
  { k.is_late() } -> std::same_as<bool>;                              // this process has not been in a generation yet
  c.enter();                                                          // for a late one: returns when it is in one
};

}  // namespace strata
