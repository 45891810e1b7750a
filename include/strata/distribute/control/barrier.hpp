// All processes wait for each other, by a deadline, through nothing but their key/value store.
#pragma once
#include <algorithm>
#include <chrono>
#include <strata/distribute/control/key_value_store.hpp>
#include <string>

namespace strata {

/// Returns once all `size` processes have called it with that name, which may be used once. Throws communication_error, naming the
/// barrier, how long this process has waited and every process that is missing at the deadline.
inline void barrier(key_value_store& store, const std::string& name, int rank, int size, std::chrono::milliseconds timeout) {
  using std::chrono::milliseconds, std::chrono::steady_clock;
  const auto began = steady_clock::now();
  const auto key_of = [&](int r) { return "barrier " + name + " of " + std::to_string(r); };
  store.set(key_of(rank), "here");
  std::string missing;
  for (int r = 0; r < size; ++r) {
    const auto spent = std::chrono::duration_cast<milliseconds>(steady_clock::now() - began);
    try {
      // After the deadline the others are still asked, so that the message names all that are missing.
      store.get(key_of(r), std::max(timeout - spent, milliseconds(missing.empty() ? 100 : 10)));
    } catch (const communication_error&) {
      if (missing.empty() && steady_clock::now() - began < timeout) throw;  // not for want of patience
      missing += (missing.empty() ? "" : ", ") + std::to_string(r);
    }
  }
  if (!missing.empty())
    throw communication_error("barrier '" + name + "': process " + std::to_string(rank) + " of " + std::to_string(size) + " has waited " +
                              std::to_string(timeout.count()) + " ms for process " + missing);
}

}  // namespace strata
