// The process group over a communicator, for executors whose processes divide layers instead of batches.
#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <strata/exchange/collective_operations.hpp>
#include <utility>

namespace strata::core {

inline constexpr auto divided_layers_are_not_elastic =
    "processes that divide the layers of a network cannot be elastic: each has some of the layers, or a part of them";

/// A process group whose members never change.
template <communicator C>
class process_group_over : public collective_operations<process_group_over<C>, C> {
  using operations = collective_operations<process_group_over, C>;
  friend operations;

 public:
  explicit process_group_over(C processes) : operations(std::move(processes)) {
    if (this->is_elastic()) throw_error(divided_layers_are_not_elastic);
  }

  /// For messages between two operations of the group.
  auto& processes() { return this->processes_; }
  using operations::exchange_votes;

 private:  // what operations needs of an elastic executor
  static long step() { return 0; }
  static void set_step(long) {}
  static void parameters_changed() {}
  static void prepare_messages(int, purpose) {}
  static void forget_messages() {}
  static void before_admission() {}
  static void after_admission() {}
  static std::array<std::span<std::byte>, 2> lasting_arrays() { return {}; }
};

}  // namespace strata::core
