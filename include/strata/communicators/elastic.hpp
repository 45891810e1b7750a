// Elastic training: a synchronous training that survives the loss of workers, and admits workers that start late.
#pragma once
#include <concepts>
#include <cstddef>
#include <functional>
#include <iostream>
#include <span>
#include <strata/base/text.hpp>
#include <strata/concepts/communicator.hpp>
#include <string>
#include <vector>

namespace strata {

/// Sets whether a training continues when workers are lost.
struct elastic_options {
  int least_workers = 0;  // with fewer, counting the chief, it ends; 0: it ends when the first worker is lost
  /// Called in the chief, on a separate thread, with a text about who was lost, who joined, and how many workers continue.
  std::function<void(const std::string&)> on_change = [](const std::string& what) { std::clog << detail::visible(what) + '\n'; };
};

namespace core {
/// The progress of a process in an elastic training, counted in collective operations.
struct elastic_progress {
  static constexpr int most_attempts = 16;

  bool is_late = false;             // has not received the state of the others yet
  bool starts_again = false;        // see elastic_communicator
  int attempts = 0;                 // to continue, since the last completed operation
  double completed = 0;             // operations so far
  std::vector<std::byte> result{};  // of the last operation
  std::vector<double> unread{};     // room for messages that only announce an operation
  int fits = 0;                     // that have ended
  int leaves[2] = {};               // for which memory for messages is prepared, by purpose

  void complete(std::span<const std::byte> with) {
    result.assign(with.begin(), with.end());
    ++completed;
    attempts = 0;
  }
};

/// A communicator of a training that may have had another number of processes when it started.
///   `first_size()`   how many there were
template <class C>
concept knows_first_size = communicator<C> && requires(const C& k) {
  { k.first_size() } -> std::same_as<int>;
};

/// A communicator whose processes can form a new generation: without those that were lost, and with those that join late. Rank 0
/// stays the same process. Memory allocated before must not be used afterwards. The members after is_elastic() are only for
/// communicators of which it is true.
///   `form_again(why)`    all remaining processes call it, after an error or to admit a late one. Throws if there is no next
///                        generation
///   `newcomers()`        the ranks that were not in the previous generation
///   `late_one_waits()`   at the chief: whether a process waits to join
///   `starts_again()`     the first generation failed while this process connected, and it has formed the next one: the others
///                        wait for its first message there
///   `is_late()`          this process has not been in a generation yet
///   `enter()`            of a late process: returns when it is in a generation
template <class C>
concept elastic_communicator = knows_first_size<C> && requires(C c, const C& k, const std::string& why) {
  { k.is_elastic() } -> std::same_as<bool>;
  c.form_again(why);
  { k.newcomers() } -> std::convertible_to<const std::vector<int>&>;
  { k.late_one_waits() } -> std::same_as<bool>;
  { k.starts_again() } -> std::same_as<bool>;
  { k.is_late() } -> std::same_as<bool>;
  c.enter();
};
}  // namespace core

}  // namespace strata
