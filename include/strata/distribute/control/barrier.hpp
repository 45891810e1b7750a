// All processes wait for each other, by a deadline, through nothing but their key/value store.
#pragma once
#include <chrono>
#include <strata/distribute/control/key_value_store.hpp>
#include <string>

namespace strata {

/// Returns once all `size` processes have called it with that name, which may be used once. Throws communication_error, naming the
/// barrier, how long this process has waited and every process that is missing at the deadline.
inline void barrier(key_value_store& store, const std::string& name, int rank, int size, std::chrono::milliseconds timeout) {
  const std::string prefix = "barrier " + name + " of ";
  store.set(prefix + std::to_string(rank), "here");
  try {
    store.get_all(prefix, size, timeout);
  } catch (const missing_values& e) {
    throw communication_error("barrier '" + name + "': process " + std::to_string(rank) + " of " + std::to_string(size) +
                              " has waited " + std::to_string(timeout.count()) + " ms for process " + e.numbers());
  }
}

}  // namespace strata
